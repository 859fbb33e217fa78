// The barrier's storage is used for data once it has served, without inval (R-M2). The store is reported, and not who then reads its value.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @init @reuse severity=error
// result: out = x[::-1] + 3
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ union { u64 barrier; float word; } both;
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t == 0) INIT(&both.barrier, 64);  /*@init*/
    __syncthreads();
    tile[t] = x[t];
    ARRIVE(&both.barrier);
    WAIT(&both.barrier, 0);
    __syncthreads();
    if (t == 0) {
#ifndef RACY
        INVAL(&both.barrier);
#endif
        *(volatile float*)&both.word = 3.0f;  /*@reuse*/
    }
    __syncthreads();
    out[t] = tile[63 - t] + *(volatile float*)&both.word;
}
