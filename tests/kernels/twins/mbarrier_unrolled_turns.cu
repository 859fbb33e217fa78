// A stage is announced in an unrolled loop: each round has an arrival of its own in the text. In the racy twin the thread does not wait for the
// first round, and arrives twice in one phase. The count is right, and the wait is missing (R-M5).
// Not run on a chip: the first phase has bytes of both rounds there, and is never over.
// backends: cpu
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @arrive severity=error
// allow: deadlock severity=error
// result: out = x[:32][::-1] + x[32:][::-1]
#include "../mbarrier.cuh"
#ifdef RACY
enum { WAITS = 0 };
#else
enum { WAITS = 1 };
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float stage[32];
    __shared__ u64 full, empty;
    const int t = threadIdx.x, lane = t % 32;
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 32);
    }
    __syncthreads();
    if (t < 32) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (WAITS && k) WAIT(&empty, 0);
            if (t == 0) ARRIVE_EXPECT(&full, 128);  /*@arrive*/
            __syncwarp();
            if (k != WAITS) asm volatile("bar.arrive 1, 64;" ::: "memory");
        }
    } else if (t < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        for (int k = 0; k < 2; k++) {
            if (k) WAIT(&empty, 0);
            if (lane == 0) BULK_LOAD(stage, x + 32 * k, 128, &full);
        }
    } else {
        float sum = 0;
        for (int k = 0; k < 2; k++) {
            WAIT(&full, k);
            sum += stage[31 - lane];
            ARRIVE(&empty);
        }
        out[lane] = sum;
    }
}
