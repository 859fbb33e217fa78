// cp.async.mbarrier.arrive publishes the thread's copies, and nothing else that the thread did before it.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1] * 2
#include "../mbarrier.cuh"
#ifdef RACY
#define COUNT 32
#else
#define COUNT 64
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(16) float tile[128];
    __shared__ float scale[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) INIT(&full, COUNT);
    __syncthreads();
    if (warp == 0) {
        scale[lane] = 2;  /*@write*/
        COPY16(&tile[4 * lane], &x[4 * lane]);
        COPIES_ARRIVE_NOINC(&full);
#ifndef RACY
        ARRIVE(&full);
#endif
    } else {
        WAIT(&full, 0);
        float factor = scale[31 - lane];  /*@read*/
        for (int k = 0; k < 4; k++) out[32 * k + lane] = factor * tile[127 - 32 * k - lane];
    }
}
