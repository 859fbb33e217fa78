// A stage is read, handed over with a barrier, and filled again by a bulk copy, with no proxy fence between: a point of the strict
// reading (D1), which shipped pipelines do not care for.
// launch: grid=1 block=64 arch=sm_90a
// policy: isa
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: missing-proxy-fence WAR @read @load severity=warning
// result: out = x.reshape(2, 64)[:, ::-1].reshape(128)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(full, 1);
    __syncthreads();
    for (int i = 0; i < 2; ++i) {
        if (t == 0) {
            expect(full, sizeof tile);
            bulk_load(tile, x + 64 * i, sizeof tile, full);  /*@load*/
        }
        wait(full, i & 1);
        out[64 * i + t] = tile[63 - t];  /*@read*/
#ifndef RACY
        fence_async_shared();
#endif
        __syncthreads();
    }
}
