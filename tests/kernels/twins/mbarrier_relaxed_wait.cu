// The reader's wait is relaxed: it sees that the phase is over, and acquires nothing (R-M10). With a fence after it, it does.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) INIT(&full, 32);
    __syncthreads();
    if (warp == 0) {
        tile[lane] = x[lane];  /*@write*/
        ARRIVE(&full);
    } else {
        WAIT_RELAXED(&full, 0);
#ifndef RACY
        FENCE();
#endif
        out[lane] = tile[31 - lane];  /*@read*/
    }
}
