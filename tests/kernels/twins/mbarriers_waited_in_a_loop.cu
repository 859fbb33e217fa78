// Four copies, each on an mbarrier of its own. A loop waits for one barrier after the other, and nothing else is in it: each wait is a loop of its
// own, which only the phase ends, so the loop around them is no poll that gives up (R-M14). With one wait too few, the last copy is read too early.
// launch: grid=1 block=32 arch=sm_90
// arg: x f32[4,32]=random
// arg: out f32[32]=zeros
// expect: missing-wait RAW @load @use severity=error
// allow: lifetime @load
// result: out = x.sum(0)[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float v[4][32];
    __shared__ alignas(8) u64 full[4];
    const int t = threadIdx.x;
    if (t == 0)
        for (int s = 0; s < 4; s++) INIT(&full[s], 1);
    __syncthreads();
    if (t == 0)
#pragma unroll 1
        for (int s = 0; s < 4; s++) {
            ARRIVE_EXPECT(&full[s], 128);
            BULK_LOAD(v[s], x + s * 32, 128, &full[s]);  /*@load*/
        }
#ifdef RACY
    const int stages = 3;
#else
    const int stages = 4;
#endif
#pragma unroll 1
    for (int s = 0; s < stages; s++) WAIT(&full[s], 0);
    float sum = 0;
    for (int s = 0; s < 4; s++) sum += v[s][31 - t];  /*@use*/
    out[t] = sum;
}
