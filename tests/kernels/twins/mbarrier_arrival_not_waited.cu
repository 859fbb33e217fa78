// All threads arrive in each round, and wait in the first one only.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race RAW @put @get severity=error
// allow: barrier-misuse severity=error
// allow: data-race
// result: out = 2 * x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[2][64];
    __shared__ u64 bar;
    int t = threadIdx.x;
    if (t == 0) INIT(&bar, 64);
    __syncthreads();
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        tile[k][t] = x[t];  /*@put*/
        ARRIVE(&bar);
#ifdef RACY
        if (k == 0) WAIT(&bar, k);
#else
        WAIT(&bar, k);
#endif
        sum += tile[k][63 - t];  /*@get*/
    }
    out[t] = sum;
}
