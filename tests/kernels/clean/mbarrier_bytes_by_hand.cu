// complete_tx and expect_tx as instructions, in that order, and the arrival last: the count of bytes is below zero for a while.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t == 0) INIT(&full, 64);
    __syncthreads();
    tile[t] = x[t];
    if (t < 32) COMPLETE_TX(&full, 16);
    else EXPECT_TX(&full, 16);
    ARRIVE(&full);
    WAIT(&full, 0);
    out[t] = tile[63 - t];
}
