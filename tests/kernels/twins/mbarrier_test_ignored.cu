// Each thread arrives and tests the mbarrier once, and nobody looks at whether the test has returned true. Where it has, by luck, it orders
// nothing all the same: the thread would read if it had not (R-M14).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race RAW @write @read severity=error
// allow: uninitialized-read @read
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 all;
    __shared__ float tile[64];
    if (threadIdx.x == 0) INIT(&all, 64);
    __syncthreads();
    tile[threadIdx.x] = x[threadIdx.x];  /*@write*/
    ARRIVE(&all);
#ifdef RACY
    u32 unused;
    ATTEMPT(unused, "test_wait.parity", &all, "r", 0u);
#else
    WAIT(&all, 0);
#endif
    out[threadIdx.x] = tile[63 - threadIdx.x];  /*@read*/
}
