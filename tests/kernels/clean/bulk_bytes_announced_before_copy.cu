// A second warp announces bytes in no order with the one arrival. The phase waits for the copy of the arriving thread, which comes behind
// both, so it cannot end before the bytes are announced.
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[32]=zeros
// result: out = x.reshape(2, 64)[:, ::2].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float stage[128];
    __shared__ u64 full;
    const int t = threadIdx.x;
    if (t == 0) INIT(&full, 1);
    __syncthreads();
    if (t == 32) {
        EXPECT_TX(&full, 256);
        BULK_LOAD(stage + 64, x + 64, 256, &full);
    }
    if (t == 64) ARRIVE_EXPECT(&full, 256);
    if (t >= 32) asm volatile("bar.sync 1, 64;" ::: "memory");
    if (t == 64) BULK_LOAD(stage, x, 256, &full);
    if (t < 32) {
        WAIT(&full, 0);
        out[t] = stage[2 * t] + stage[64 + 2 * t];
    }
}
