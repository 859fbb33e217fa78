// A bulk copy overwrites a buffer that ordinary stores have cleared, without a proxy fence in between (R-B9, WAW).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: missing-proxy-fence WAW @clear @load severity=error
// result: out = np.concatenate([x[:48], np.zeros(16, np.float32)])
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    tile[t] = 0.0f;  /*@clear*/
    if (t == 0) init(full, 1);
#ifndef RACY
    fence_async_shared();
#endif
    __syncthreads();
    if (t == 0) {
        expect(full, 192);
        bulk_load(tile, x, 192, full);  /*@load*/
    }
    wait(full, 0);
    out[t] = tile[t];
}
