// A warp arrives at a barrier that has been invalidated (R-M1). What that does is undefined, so no chip runs it.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @inval @arrive severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bar;
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t == 0) INIT(&bar, 64);
    __syncthreads();
    tile[t] = x[t];
    ARRIVE(&bar);
    WAIT(&bar, 0);
    out[t] = tile[63 - t];
#ifndef RACY
    if (t >= 32) ARRIVE(&bar);
#endif
    __syncthreads();
    if (t == 1) INVAL(&bar);  /*@inval*/
    __syncthreads();
#ifdef RACY
    if (t >= 32) ARRIVE(&bar);  /*@arrive*/
#endif
}
