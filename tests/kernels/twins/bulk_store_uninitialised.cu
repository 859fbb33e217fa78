// A bulk store sends out a tile whose last quarter was never written.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: uninitialized-read @store severity=error
// result: out = np.concatenate([x[:48], np.zeros(16, np.float32)])
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    if (t < 48) tile[t] = x[t];
#ifndef RACY
    else tile[t] = 0.0f;
#endif
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        bulk_store(out, tile, sizeof tile);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
