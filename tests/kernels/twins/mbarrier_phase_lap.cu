// The second tile is announced before anybody has waited for the first: a phase is over, and nobody has seen it (R-M5).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @arrive severity=error
// result: out = x[:32][::-1] + x[32:][::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ float tile[2][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) INIT(&full, 32);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        if (warp == 1) {
            tile[k][lane] = x[k * 32 + lane];
            ARRIVE(&full);  /*@arrive*/
        }
#ifndef RACY
        if (k == 0) WAIT(&full, 0);
        __syncthreads();
#endif
    }
    __syncthreads();
    if (warp == 0) {
        WAIT(&full, 1);
        out[lane] = tile[0][31 - lane] + tile[1][31 - lane];
    }
}
