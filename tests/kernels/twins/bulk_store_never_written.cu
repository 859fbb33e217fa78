// A bulk store sends out a tile that nobody has written at all.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: uninitialized-read @store severity=error
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[256];
    int t = threadIdx.x;
#ifndef RACY
    for (int i = t; i < 256; i += 64) tile[i] = x[i];
#endif
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        bulk_store(out, tile, sizeof tile);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
