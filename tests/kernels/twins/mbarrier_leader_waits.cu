// The leader waits for the copy, and nobody else is told: the other threads read without a wait or a barrier of their own.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: missing-wait @load @read severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(128) float tile[64];
    int t = threadIdx.x;
    if (t == 0) INIT(&full, 1);
    __syncthreads();
    if (t == 0) {
        ARRIVE_EXPECT(&full, sizeof tile);
        BULK_LOAD(tile, x, sizeof tile, &full);  /*@load*/
    }
    __syncthreads();
    if (t == 0) WAIT(&full, 0);
#ifndef RACY
    __syncthreads();
#endif
    out[t] = tile[63 - t];  /*@read*/
}
