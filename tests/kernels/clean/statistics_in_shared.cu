// R-MO1 says nothing of counters: one thread counts its rounds in a volatile word, and a thread of another warp takes a look at it.
// launch: grid=1 block=64
// arg: out u32[1]=zeros
// arg: look u32[1]=zeros
// result: out = np.uint32([5])
extern "C" __global__ void kernel(unsigned* out, unsigned* look) {
    __shared__ volatile unsigned rounds;
    if (threadIdx.x == 0) rounds = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 0; i < 5; i++) rounds = rounds + 1;
    if (threadIdx.x == 32) look[0] = rounds;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = rounds;
}
