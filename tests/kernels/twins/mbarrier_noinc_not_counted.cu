// Without a count for them, the arrivals of cp.async.mbarrier.arrive.noinc complete phases of their own (R-M11).
// On an H200 the chip stops the launch with a failure when arrivals exceed the count, before anything can be read back.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: barrier-misuse @init @arrive severity=error
// allow: barrier-misuse
// allow: missing-wait
// result: out = x[::-1]
#include "../mbarrier.cuh"
#ifdef RACY
#define COUNT 1
#define WAIT_FULL() POLL_A_WHILE(&full, 0)
#else
#define COUNT 33
#define WAIT_FULL() WAIT(&full, 0)
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(16) float tile[128];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) INIT(&full, COUNT);  /*@init*/
    __syncthreads();
    if (warp == 0) {
        COPY16(&tile[4 * lane], &x[4 * lane]);
        COPIES_ARRIVE_NOINC(&full);  /*@arrive*/
        if (lane == 0) ARRIVE(&full);
    } else {
        WAIT_FULL();
        for (int k = 0; k < 4; k++) out[32 * k + lane] = tile[127 - 32 * k - lane];
    }
}
