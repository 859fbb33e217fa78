// The only proxy fence stands in the loop over the terms of the sum: with no terms, a zero-filled tile is stored by TMA unfenced.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out tma:f32[8,32]=arange,box=8x32
// arg: terms i32=0
// expect: missing-proxy-fence @clear @store severity=error
// result: out = np.zeros((8, 32))
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap out, int terms) {
    __shared__ alignas(128) float tile[256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 64) tile[i] = 0.0f;  /*@clear*/
#pragma unroll 1
    for (int k = 0; k < terms; k++) {
        for (int i = t; i < 256; i += 64) tile[i] += x[(i + k) % 64];
#ifdef RACY
        fence_async_shared();
#endif
    }
#ifndef RACY
    fence_async_shared();
#endif
    __syncthreads();
    if (t == 0) {
        tensor_store(out, 0, 0, tile);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
