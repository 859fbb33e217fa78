// The barrier is invalidated while a copy that is to signal it may still be in flight (R-M12).
// What the signal then hits is undefined, so no chip runs it.
// launch: grid=1 block=32 arch=sm_90
// backends: cpu
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @load @inval severity=error
// allow: lifetime @load
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(128) float tile[32];
    int lane = threadIdx.x;
    if (lane == 0) {
        INIT(&full, 1);
        ARRIVE_EXPECT(&full, sizeof tile);
        BULK_LOAD(tile, x, sizeof tile, &full);  /*@load*/
#ifndef RACY
        WAIT(&full, 0);
#endif
        INVAL(&full);  /*@inval*/
    }
    __syncwarp();
#ifdef RACY
    out[lane] = x[31 - lane];
#else
    out[lane] = tile[31 - lane];
#endif
}
