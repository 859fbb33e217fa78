// The epilogue writes its tile with ordinary stores, and one thread stores it as a tensor: the fence between the proxies is missing.
// launch: grid=1 block=32x4 arch=sm_90a
// arg: T0 tensor:f32[16,32]=random
// arg: T1 tma:f32[16,32]=zeros,box=8x32
// expect: missing-proxy-fence @write @store severity=error
// result: T1 = T0 * 2
#include "../nvfuser.cuh"
extern "C" __global__ void kernel(Tensor<float, 2, 2> T0, const __grid_constant__ TensorMap T1) {
    alignas(128) __shared__ float T2[2][256];
    nvfuser_index_t i0 = threadIdx.y * 32 + threadIdx.x;
    for (nvfuser_index_t i1 = 0; i1 < 2; ++i1) {
        for (int i = 0; i < 2; i++) T2[i1][i0 + 128 * i] = T0[i1 * 256 + i0 + 128 * i] * 2;  /*@write*/
#ifndef RACY
        fence_async_shared();
#endif
        __syncthreads();
        if (i0 == 0) tensor_store(T1, 0, 8 * i1, T2[i1]);  /*@store*/
    }
    if (i0 == 0) {
        bulk_commit();
        bulk_wait<0>();
    }
}
