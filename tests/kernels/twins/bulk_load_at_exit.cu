// A copy into shared memory that nobody waits for may still write when the CTA has gone.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: lifetime @load severity=error
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        init(full, 1);
        expect(full, sizeof tile);
        bulk_load(tile, x, sizeof tile, full);  /*@load*/
#ifndef RACY
        wait(full, 0);
#endif
    }
    out[t] = x[t];
}
