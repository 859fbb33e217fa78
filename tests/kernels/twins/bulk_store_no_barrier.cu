// Every thread fences its part of the tile, but the issuer of the bulk store does not wait for the others. Whether a write
// comes before the store or while it is in flight is luck: either kind is right.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race|missing-wait @write @store severity=error
// allow: uninitialized-read @store severity=error
// result: out = 2 * x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    tile[t] = 2 * x[t];  /*@write*/
    fence_async_shared();
#ifndef RACY
    __syncthreads();
#endif
    if (t == 0) {
        bulk_store(out, tile, sizeof tile);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
