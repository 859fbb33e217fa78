// The CTA ends while a bulk store may still read its shared memory: committed, not waited for.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: lifetime @store severity=error
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        bulk_store(out, tile, sizeof tile);  /*@store*/
        bulk_commit();
#ifndef RACY
        bulk_wait_read<0>();
#endif
    }
}
