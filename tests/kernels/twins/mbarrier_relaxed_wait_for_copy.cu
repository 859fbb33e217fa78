// A relaxed wait for a bulk copy acquires nothing of it either (R-M10).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: missing-wait @load @read severity=error
// allow: lifetime @load
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(128) float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        ARRIVE_EXPECT(&full, sizeof tile);
        BULK_LOAD(tile, x, sizeof tile, &full);  /*@load*/
    }
    __syncthreads();
    if (warp == 1) {
        WAIT_RELAXED(&full, 0);
#ifndef RACY
        FENCE();
#endif
        out[lane] = tile[31 - lane];  /*@read*/
    }
}
