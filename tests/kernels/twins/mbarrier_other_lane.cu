// Lane 0 waits for the copy, and the other lanes read with no bar.warp.sync: the shuffle between makes them meet, and orders nothing.
// launch: grid=1 block=32 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: missing-wait @load @read severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(128) float tile[32];
    int lane = threadIdx.x;
    if (lane == 0) INIT(&full, 1);
    __syncwarp();
    if (lane == 0) {
        ARRIVE_EXPECT(&full, sizeof tile);
        BULK_LOAD(tile, x, sizeof tile, &full);  /*@load*/
        WAIT(&full, 0);
    }
    float scale = __shfl_sync(~0u, lane + 1.0f, 0);
#ifndef RACY
    __syncwarp();
#endif
    out[lane] = scale * tile[31 - lane];  /*@read*/
}
