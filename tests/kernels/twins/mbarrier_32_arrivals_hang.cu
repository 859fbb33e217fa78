// All lanes of a warp arrive where the barrier counts one, and its own threads wait for the first phase when 32 have passed: for ever (R-M3).
// What a thread did right before a wait that does not return is in its record.
// On an H200 the chip stops the launch with a failure when arrivals exceed the count, before anything can be read back.
// backends: cpu
// launch: grid=1 block=32 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @init @arrive severity=error
// allow: deadlock
// result: out = x[::-1]
#include "../mbarrier.cuh"
#ifdef RACY
#define ARRIVES true
#else
#define ARRIVES (lane == 0)
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ float tile[32];
    int lane = threadIdx.x;
    if (lane == 0) INIT(&full, 1);  /*@init*/
    __syncthreads();
    tile[lane] = x[lane];
    __syncwarp();
    if (ARRIVES) ARRIVE(&full);  /*@arrive*/
    WAIT(&full, 0);
    out[lane] = tile[31 - lane];
}
