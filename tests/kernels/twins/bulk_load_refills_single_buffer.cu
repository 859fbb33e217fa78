// One thread loads the next tile into the only buffer while other threads still read the last one: all have waited for the phase of their tile,
// and no barrier comes before the next load (R-B1). A warp may lie several rounds behind.
// Not run on a chip: a thread that misses a phase waits for ever.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[5,64]=random
// arg: out f32[5,64]=zeros
// expect: data-race WAR @read @load severity=error
// allow: deadlock
// result: out = x[:, ::-1]
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(full, 1);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 5; k++) {
        if (t == 0) {
            expect(full, sizeof tile);
            bulk_load(tile, x + k * 64, sizeof tile, full);  /*@load*/
        }
        wait(full, k & 1);
        out[k * 64 + t] = tile[63 - t];  /*@read*/
#ifndef RACY
        __syncthreads();
#endif
    }
}
