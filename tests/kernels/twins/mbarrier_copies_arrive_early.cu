// The producer lets the stage's barrier track its copies. In the racy twin `cp.async.mbarrier.arrive` comes before the copy of its stage.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[512]=arange
// arg: out f32[32]=zeros
// expect: missing-wait RAW @copy @read severity=error
// allow: missing-wait WAW @copy severity=error
// result: out = x.reshape(4, 4, 32).sum(axis=(0, 1))
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(128) float ring[2][128];
    __shared__ u64 full[2], empty[2];
    const int t = threadIdx.x, lane = t % 32;
    if (t < 2) {
        INIT(&full[t], 32);
        INIT(&empty[t], 32);
    }
    __syncthreads();
    if (t < 32) {
        for (int k = 0; k < 4; k++) {
            WAIT(&empty[k & 1], (k >> 1 & 1) ^ 1);
#ifdef RACY
            COPIES_ARRIVE_NOINC(&full[k & 1]);
#endif
            COPY16(&ring[k & 1][lane * 4], x + k * 128 + lane * 4);  /*@copy*/
#ifndef RACY
            COPIES_ARRIVE_NOINC(&full[k & 1]);
#endif
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
    } else {
        float sum = 0;
        for (int k = 0; k < 4; k++) {
            WAIT(&full[k & 1], k >> 1 & 1);
            for (int i = 0; i < 4; i++) sum += ring[k & 1][i * 32 + lane];  /*@read*/
            ARRIVE(&empty[k & 1]);
        }
        out[lane] = sum;
    }
}
