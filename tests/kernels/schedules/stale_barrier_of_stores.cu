// A consumer tests the barrier of the next stage ahead. If that test fails it waits for the stage before, which is complete: what the producer
// stores may not be there. Stores are there at once: the test fails only if the producer is held before it arrives.
// launch:   grid=1 block=64 arch=sm_90
// arg:      x f32[96]=random
// arg:      y f32[32]=zeros
// expect:   data-race RAW severity=error
// result:   y = x.reshape(3, 32).sum(axis=0)
// backends: cpu
#include "../mbarrier.cuh"

extern "C" __global__ void kernel(const float *x, float *y) {
    __shared__ __align__(8) u64 full[3];
    __shared__ float stage[3][32];
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; i++) INIT(&full[i], 32);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; i < 3; i++) {
            stage[i][lane] = x[32 * i + lane];
            ARRIVE(&full[i]);
        }
    } else {
        u32 ready = 0;
        float sum = 0;
        for (int i = 0; i < 3; i++) {
#ifdef RACY
            int of = i > 0 ? i - 1 : 0;
#else
            int of = i;
#endif
            if (!ready) WAIT(&full[of], 0);
            sum += stage[i][lane];
            if (i < 2) ATTEMPT(ready, "try_wait.parity", &full[i + 1], "r", 0);
        }
        y[lane] = sum;
    }
}
