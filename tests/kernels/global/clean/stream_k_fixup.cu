// Stream-K as CUTLASS reduces it: each CTA but the last adds its part to the workspace when its turn has come, and counts on; the last one
// adds its own part and stores the tile. Thread 0 polls with an acquire and counts with a release, a barrier on each side.
//
// launch: grid=4 block=64
// arg:    parts f32[64]=zeros
// arg:    turn u32[1]=zeros
// arg:    out f32[64]=zeros
// result: out = np.full(64, 10, np.float32)
extern "C" __global__ void kernel(float* parts, unsigned* turn, float* out) {
    unsigned seen = 0, own = blockIdx.x;
    if (own && threadIdx.x == 0)
        while (seen != own) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(seen) : "l"(turn) : "memory");
    __syncthreads();
    float sum = own + 1 + (own ? parts[threadIdx.x] : 0);
    if (own == gridDim.x - 1) {
        out[threadIdx.x] = sum;
        return;
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(turn) : "memory");
}
