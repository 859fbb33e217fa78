// A plain arrival says nothing of the thread's copies: the phase completes while they are still in flight.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: missing-wait @copy @read severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(16) float tile[128];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) INIT(&full, 32);
    __syncthreads();
    if (warp == 0) {
        COPY16(&tile[4 * lane], &x[4 * lane]);  /*@copy*/
#ifdef RACY
        ARRIVE(&full);
#else
        COPIES_ARRIVE_NOINC(&full);
#endif
    } else {
        WAIT(&full, 0);
        for (int k = 0; k < 4; k++) out[32 * k + lane] = tile[127 - 32 * k - lane];  /*@read*/
    }
}
