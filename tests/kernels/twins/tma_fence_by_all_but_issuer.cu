// All writers fence after the barrier, but for the one that issues the store: no fence lies between their writes and the store.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[256]=arange
// arg: out tma:f32[8,32]=zeros,box=8x32
// expect: missing-proxy-fence @write @store severity=error
// result: out = x.reshape(8, 32) * 2
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap out) {
    __shared__ alignas(128) float tile[256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 64) tile[i] = x[i] * 2;  /*@write*/
#ifndef RACY
    fence_async_shared();
#endif
    __syncthreads();
#ifdef RACY
    if (t != 0) fence_async_shared();
#endif
    if (t == 0) {
        tensor_store(out, 0, 0, tile);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
