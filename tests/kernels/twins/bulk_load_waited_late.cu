// Two tiles, each with its mbarrier: the wait for the second one comes after its use.
// launch: grid=1 block=32 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[32]=zeros
// expect: missing-wait RAW @load @read severity=error
// result: out = x[:32][::-1] + x[32:][::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float a[32], b[32];
    __shared__ u64 a_full, b_full;
    int t = threadIdx.x;
    if (t == 0) {
        INIT(&a_full, 1);
        INIT(&b_full, 1);
    }
    __syncwarp();
    if (t == 0) {
        ARRIVE_EXPECT(&a_full, sizeof a);
        BULK_LOAD(a, x, sizeof a, &a_full);
        ARRIVE_EXPECT(&b_full, sizeof b);
        BULK_LOAD(b, x + 32, sizeof b, &b_full);  /*@load*/
    }
    WAIT(&a_full, 0);
#ifndef RACY
    WAIT(&b_full, 0);
#endif
    out[t] = a[31 - t] + b[31 - t];  /*@read*/
#ifdef RACY
    WAIT(&b_full, 0);
#endif
}
