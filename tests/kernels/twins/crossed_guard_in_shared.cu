// Two warps each raise a flag in shared memory and write one word if the other's is not up. Without fence.sc between store and look in both, both may
// write (R-MO2). Lanes 0 alone take part.
// backends: cpu
// launch: grid=1 block=64
// arg: out u32[1]=zeros
// expect: data-race WAW @write @write severity=error
// expect: missing-order RAW @store @look severity=warning
// result: out = np.full(1, 1)
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ volatile unsigned flags[2];
    __shared__ unsigned chosen;
    unsigned w = threadIdx.x / 32;
    if (threadIdx.x < 2) flags[threadIdx.x] = 0;
    if (threadIdx.x == 0) chosen = 7;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        flags[w] = 1;  /*@store*/
#ifndef RACY
        __threadfence_block();
#endif
        if (flags[w ^ 1] == 0) chosen = w;  /*@look*/ /*@write*/
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = chosen < 8;
}
