// All lanes of a warp arrive where the barrier counts one: each arrival completes a phase (R-M3).
// On an H200 the chip stops the launch with a failure when arrivals exceed the count, before anything can be read back.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @init @arrive severity=error
// allow: data-race @write @read
// allow: uninitialized-read
// result: out = x[::-1]
#include "../mbarrier.cuh"
#ifdef RACY
#define ARRIVES true
#define WAIT_FULL() POLL_A_WHILE(&full, 0)
#else
#define ARRIVES (lane == 0)
#define WAIT_FULL() WAIT(&full, 0)
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) INIT(&full, 1);  /*@init*/
    __syncthreads();
    if (warp == 0) {
        tile[lane] = x[lane];  /*@write*/
        __syncwarp();
        if (ARRIVES) ARRIVE(&full);  /*@arrive*/
    } else {
        WAIT_FULL();
        out[lane] = tile[31 - lane];  /*@read*/
    }
}
