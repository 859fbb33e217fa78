// A consumer tests the barrier of the next stage ahead of its loop. If that test fails it waits, but for the barrier of the first stage,
// whose phase has long been complete: the data of the next stage may not be there. Where no test fails, all is well.
// launch:   grid=1 block=64 arch=sm_90
// arg:      x f32[512]=random
// arg:      y f32[32]=zeros
// expect:   missing-wait RAW severity=error
// result:   y = x.reshape(4, 4, 32).sum(axis=(0, 1))
// backends: cpu
#include "../hopper.cuh"

INLINE bool test(u64 *barrier, u32 parity) {
    u32 done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(shared(barrier)), "r"(parity) : "memory");
    return done;
}

extern "C" __global__ void kernel(const float *x, float *y) {
    __shared__ __align__(128) float stage[4][128];
    __shared__ u64 full[4];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 4; i++) init(full[i], 1);
    }
    __syncthreads();
    if (threadIdx.x == 32) {
        for (int i = 0; i < 4; i++) {
            expect(full[i], 512);
            bulk_load(stage[i], x + 128 * i, 512, full[i]);
        }
    } else if (threadIdx.x < 32) {
        u64 *barrier = &full[0];
        bool ready = test(barrier, 0);
        float sum = 0;
        for (int i = 0; i < 4; i++) {
#ifndef RACY
            barrier = &full[i];
#endif
            while (!ready) ready = test(barrier, 0);
            for (int j = 0; j < 4; j++) sum += stage[i][32 * j + threadIdx.x];
            ready = i + 1 < 4 ? test(&full[i + 1], 0) : true;
        }
        y[threadIdx.x] = sum;
    }
}
