// A warp reads what another one has written without waiting for the barrier at which the writer arrived.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: data-race RAW @write @read severity=error
// allow: uninitialized-read
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) INIT(&full, 32);
    __syncthreads();
    if (warp == 0) {
        tile[lane] = x[lane];  /*@write*/
        ARRIVE(&full);
    } else {
#ifndef RACY
        WAIT(&full, 0);
#endif
        out[lane] = tile[31 - lane];  /*@read*/
    }
}
