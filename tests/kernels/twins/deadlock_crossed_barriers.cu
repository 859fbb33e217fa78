// Two warps wait at two mbarriers in opposite orders, each before it has arrived where the other waits.
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: deadlock @first @second severity=error
// result: out = x.reshape(2, 32)[::-1].reshape(-1)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bars[2];
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t == 0) {
        INIT(&bars[0], 32);
        INIT(&bars[1], 32);
    }
    __syncthreads();
    tile[t] = x[t];
#ifndef RACY
    ARRIVE(&bars[t / 32]);
#endif
    if (t < 32) {
        WAIT(&bars[1], 0);  /*@first*/
    } else {
        WAIT(&bars[0], 0);  /*@second*/
    }
#ifdef RACY
    ARRIVE(&bars[t / 32]);
#endif
    out[t] = tile[t ^ 32];
}
