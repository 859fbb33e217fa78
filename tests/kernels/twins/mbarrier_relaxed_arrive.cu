// The writer's arrival is relaxed: it completes the phase, and publishes nothing (R-M10). With a fence before it, it does.
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
#ifndef RACY
        FENCE();
#endif
        ARRIVE_RELAXED(&full);
    } else {
        WAIT(&full, 0);
        out[lane] = tile[31 - lane];  /*@read*/
    }
}
