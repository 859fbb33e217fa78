// One thread arrives and then announces the bytes of its copy: the arrival has ended the phase, and the bytes belong to the next one.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[32]=zeros
// expect: missing-wait RAW @load @read severity=error
// allow: lifetime severity=error
// result: out = x[::2]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float stage[64];
    __shared__ u64 full;
    const int t = threadIdx.x;
    if (t == 0) INIT(&full, 1);
    __syncthreads();
    if (t == 32) {
#ifdef RACY
        ARRIVE(&full);
        EXPECT_TX(&full, 256);
#else
        EXPECT_TX(&full, 256);
        ARRIVE(&full);
#endif
        BULK_LOAD(stage, x, 256, &full); /*@load*/
    } else if (t < 32) {
        WAIT(&full, 0);
        out[t] = stage[2 * t]; /*@read*/
    }
}
