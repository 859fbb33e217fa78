// G11: a thread issues a bulk load of what the others store, and no barrier comes before the issue: a race, and no missing wait.
//
// launch: grid=1 block=64 arch=sm_90a
// arg:    data f32[64]=zeros
// arg:    out f32[64]=zeros
// expect: data-race RAW @write @load severity=error
// result: out = np.arange(64, dtype=np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(full, 1);
    __syncthreads();
    data[t] = t;  /*@write*/
    fence_async_global();
#ifndef RACY
    __syncthreads();
#endif
    if (t == 0) {
        expect(full, sizeof(tile));
        bulk_load(tile, data, sizeof(tile), full);  /*@load*/
    }
    wait(full, 0);
    out[t] = tile[t];
}
