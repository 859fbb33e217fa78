// Two warps raise a flag in shared memory and wait for the other's; later each looks at a flag that the other has raised before a barrier.
// Neither store may be missed for good, so no fence.sc is needed (R-MO2).
// launch: grid=1 block=64
// arg: out u32[2]=zeros
// result: out = np.full(2, 1)
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ volatile unsigned flags[64], later[64];
    flags[threadIdx.x] = 0, later[threadIdx.x] = 0;
    __syncthreads();
    int w = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        flags[w * 32] = 1;
        while (flags[(w ^ 1) * 32] == 0) {}
        later[w * 32] = 1;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0 && later[(w ^ 1) * 32]) out[w] = 1;
}
