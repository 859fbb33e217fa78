// A warp loads a tile and tells another warp that it has begun. The other warp waits for that, and not for the bytes (R-M7).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: missing-wait RAW @load @read severity=error
// allow: uninitialized-read @read
// result: out = x
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float tile[32];
    __shared__ u64 full, ready;
    u32 t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        INIT(&ready, 1);
    }
    __syncthreads();
    if (t < 32) {
        if (t == 0) {
            ARRIVE_EXPECT(&full, sizeof tile);
            BULK_LOAD(tile, x, sizeof tile, &full);  /*@load*/
            ARRIVE(&ready);
        }
        WAIT(&full, 0);
    } else {
        WAIT(&ready, 0);
#ifndef RACY
        WAIT(&full, 0);
#endif
        out[t - 32] = tile[t - 32];  /*@read*/
    }
}
