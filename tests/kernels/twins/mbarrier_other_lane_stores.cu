// Lane 0 waits for the warp that stored the tile, and the other lanes of its warp read with no bar.warp.sync. The shuffle between
// makes them meet, and orders nothing.
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
        if (lane == 0) WAIT(&full, 0);
        float scale = __shfl_sync(~0u, lane + 1.0f, 0);
#ifndef RACY
        __syncwarp();
#endif
        out[lane] = scale * tile[31 - lane];  /*@read*/
    }
}
