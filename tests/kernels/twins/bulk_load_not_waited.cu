// A bulk copy brings the tile, and the threads read it without waiting for its mbarrier (R-B1).
// launch: grid=2 block=64 arch=sm_90a
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: missing-wait RAW @load @read severity=error
// result: out = x.reshape(2, 64)[:, ::-1]
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        init(full, 1);
        expect(full, sizeof tile);
        bulk_load(tile, x + blockIdx.x * 64, sizeof tile, full);  /*@load*/
    }
    __syncthreads();
#ifndef RACY
    wait(full, 0);
#else
    if (t == 0) wait(full, 0);
#endif
    out[blockIdx.x * 64 + t] = tile[63 - t];  /*@read*/
}
