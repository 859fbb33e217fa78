// The up-sweep of a scan by levels, then another thread clears the last element. A barrier begins each level of the loop, which is unrolled, and
// none follows the last one: that of the loop is not to blame.
// launch: grid=1 block=64
// arg: x u32[128]=random
// arg: out u32[128]=zeros
// expect: data-race WAR @update @clear severity=error
// allow: data-race WAW
// result: out = np.array([x[i + 1 - (i + 1 & -(i + 1)) : i + 1].sum() if i < 127 else 0 for i in range(128)])
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ unsigned sums[128];
    int t = threadIdx.x, step = 1;
    sums[2 * t] = x[2 * t];
    sums[2 * t + 1] = x[2 * t + 1];
    for (int level = 64; level; level /= 2, step *= 2) {
        __syncthreads();
        if (t < level) sums[step * (2 * t + 2) - 1] += sums[step * (2 * t + 1) - 1];  /*@update*/
    }
#ifndef RACY
    __syncthreads();
#endif
    if (t == 63) sums[127] = 0;  /*@clear*/
    __syncthreads();
    out[t] = sums[t];
    out[64 + t] = sums[64 + t];
}
