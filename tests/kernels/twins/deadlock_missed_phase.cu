// One of two readers comes so late that the phase it waits for is long over: with parity it waits for one that never completes.
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: deadlock @wait severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full, seen;
    __shared__ float tile[64];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&full, 32);
        INIT(&seen, 32);
    }
    __syncthreads();
    if (warp == 0) {
        tile[lane] = x[lane];
        ARRIVE(&full);
        WAIT(&seen, 0);
        tile[32 + lane] = x[32 + lane];
        ARRIVE(&full);
    } else if (warp == 1) {
        WAIT(&full, 0);
        ARRIVE(&seen);
        WAIT(&full, 1);
        out[lane] = tile[63 - lane];
    }
    asm volatile("bar.sync 1, 96;" ::: "memory");
    if (warp == 2) {
#ifdef RACY
        WAIT(&full, 0);  /*@wait*/
#endif
        WAIT(&full, 1);
        out[32 + lane] = tile[31 - lane];
    }
}
