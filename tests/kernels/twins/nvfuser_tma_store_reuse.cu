// The tiles of the epilogue take turns in one place: the wait for the read of the last tensor store is behind the loop.
// launch: grid=1 block=32x4 arch=sm_90a
// arg: T0 tensor:f32[32,32]=random
// arg: T1 tma:f32[32,32]=zeros,box=8x32
// expect: missing-wait WAR @store @write severity=error
// result: T1 = T0 * 2
#include "../nvfuser.cuh"
extern "C" __global__ void kernel(Tensor<float, 2, 2> T0, const __grid_constant__ TensorMap T1) {
    alignas(128) __shared__ float T2[256];
    nvfuser_index_t i0 = threadIdx.y * 32 + threadIdx.x;
#pragma unroll 1
    for (nvfuser_index_t i1 = 0; i1 < 4; ++i1) {
        for (int i = 0; i < 2; i++) T2[i0 + 128 * i] = T0[i1 * 256 + i0 + 128 * i] * 2;  /*@write*/
        fence_async_shared();
        __syncthreads();
        if (i0 == 0) {
            tensor_store(T1, 0, 8 * i1, T2);  /*@store*/
            bulk_commit();
#ifndef RACY
            bulk_wait_read<0>();
#endif
        }
        __syncthreads();
    }
    if (i0 == 0) bulk_wait<0>();
}
