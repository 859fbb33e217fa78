// cp.async.mbarrier.arrive without .noinc adds the arrival that it makes: one that the count includes as well never comes (R-M11).
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: deadlock @wait severity=error
// allow: missing-wait
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(16) float tile[128];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) INIT(&full, 32);
    __syncthreads();
    if (warp == 0) {
        COPY16(&tile[4 * lane], &x[4 * lane]);
#ifdef RACY
        COPIES_ARRIVE(&full);
#else
        COPIES_ARRIVE_NOINC(&full);
#endif
    } else {
        WAIT(&full, 0);  /*@wait*/
        for (int k = 0; k < 4; k++) out[32 * k + lane] = tile[127 - 32 * k - lane];
    }
}
