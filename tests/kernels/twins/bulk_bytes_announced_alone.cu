// Two loaders fill one stage. In the racy twin the second one announces its bytes without an arrival: that of the first may end the phase
// before, and then these bytes belong to the next phase.
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @announce severity=error
// allow: missing-wait RAW @load @read severity=error
// allow: lifetime severity=error
// result: out = x.reshape(2, 64)[:, ::2].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float stage[128];
    __shared__ u64 full;
    const int t = threadIdx.x;
#ifdef RACY
    const u32 count = 1;
#else
    const u32 count = 2;
#endif
    if (t == 0) INIT(&full, count);
    __syncthreads();
    if (t == 32) {
        ARRIVE_EXPECT(&full, 256);
        BULK_LOAD(stage, x, 256, &full);
    } else if (t == 64) {
#ifdef RACY
        EXPECT_TX(&full, 256); /*@announce*/
#else
        ARRIVE_EXPECT(&full, 256);
#endif
        BULK_LOAD(stage + 64, x + 64, 256, &full); /*@load*/
    } else if (t < 32) {
        WAIT(&full, 0);
        out[t] = stage[2 * t] + stage[64 + 2 * t]; /*@read*/
    }
}
