// G11: a thread of the last warp loads in bulk what all have stored, and waits for it. RACY: no barrier lets the others store only then again.
//
// launch: grid=1 block=64 arch=sm_90a
// arg:    data f32[64]=zeros
// arg:    out f32[64]=zeros
// expect: data-race WAR @write @load severity=error
// result: out = 2 * np.arange(64, dtype=np.float32) + 1
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 32) init(full, 1);
    __syncthreads();
#pragma unroll 1
    for (int round = 0; round < 2; ++round) {
        data[t] = t + round;  /*@write*/
        fence_async_global();
        __syncthreads();
        if (t == 32) {
            expect(full, sizeof(tile));
            bulk_load(tile, data, sizeof(tile), full);  /*@load*/
            wait(full, round);
            for (int i = 0; i < 64; ++i) out[i] += tile[i];
        }
#ifndef RACY
        __syncthreads();
#endif
    }
}
