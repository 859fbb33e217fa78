// A scan by levels: each level begins with a barrier, and none follows the last one. The loop is unrolled, so the text has barriers between the
// levels; none of them is to blame.
// launch: grid=1 block=64
// arg: x u32[128]=random
// arg: out u32[128]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = np.array([x[i + 1 - (i + 1 & -(i + 1)) : i + 1].sum() for i in range(128)])
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ unsigned sums[128];
    int t = threadIdx.x, step = 1;
    sums[2 * t] = x[2 * t];
    sums[2 * t + 1] = x[2 * t + 1];
    for (int level = 64; level; level /= 2, step *= 2) {
        __syncthreads();
        if (t < level) sums[step * (2 * t + 2) - 1] += sums[step * (2 * t + 1) - 1];  /*@write*/
    }
#ifndef RACY
    __syncthreads();
#endif
    out[t] = sums[t];  /*@read*/
    out[64 + t] = sums[64 + t];  /*@read*/
}
