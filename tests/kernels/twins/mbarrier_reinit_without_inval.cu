// A barrier is initialised for a second use, with another count, without inval in between (R-M2).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @first @second severity=error
// result: out = 2 * x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bar;
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t == 0) INIT(&bar, 64);  /*@first*/
    __syncthreads();
    tile[t] = x[t];
    ARRIVE(&bar);
    WAIT(&bar, 0);
    float value = tile[63 - t];
    __syncthreads();
    if (t == 0) {
#ifndef RACY
        INVAL(&bar);
#endif
        INIT(&bar, 2);  /*@second*/
    }
    __syncthreads();
    tile[t] = 2 * value;
    __syncwarp();
    if (t % 32 == 0) ARRIVE(&bar);
    WAIT(&bar, 0);
    out[t] = tile[t];
}
