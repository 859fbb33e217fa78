// The first warp arrives for the second phase while nobody has waited for the first one, which the arrivals of both warps have completed.
// By 9.7.13.15.4 a wait must have succeeded before. The second phase cannot end before the second warp arrives, behind its wait, so that no
// known chip does anything else (D11). All look before that: who comes when both phases are over waits for ever.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @arrive severity=warning
// result: out = x[::-1]
// policy: isa
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ float tile[64];
    int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) INIT(&full, 64);
    __syncthreads();
    tile[threadIdx.x] = x[threadIdx.x];
    ARRIVE(&full);
    __syncthreads();
#ifdef RACY
    if (warp == 0) ARRIVE(&full);  /*@arrive*/
    __syncthreads();
    WAIT(&full, 0);
    __syncthreads();
#else
    WAIT(&full, 0);
    __syncthreads();
    if (warp == 0) ARRIVE(&full);
#endif
    if (warp == 1) ARRIVE(&full);
    WAIT(&full, 1);
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
