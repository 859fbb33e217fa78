// A warp that loads and a warpgroup that computes. The products are waited for once, behind the loop; but each stage is given back within
// it, and the next load may overwrite what products still read.
// launch: grid=1 block=128x2 arch=sm_90a
// arg: T0 tensor:f16[64,16]=random
// arg: T1 tma:f16[8,64]=random,box=8x8
// arg: T2 tensor:f32[64,8]=zeros
// expect: missing-wait WAR @multiply @load severity=error
// result: T2 = np.tile(T0, (1, 4)).astype(np.float32) @ T1.astype(np.float32).T
#include "../nvfuser.cuh"
extern "C" __global__ void kernel(Tensor<f16, 2, 2> T0, const __grid_constant__ TensorMap T1, Tensor<float, 2, 2> T2) {
    alignas(128) __shared__ f16 T3[64 * 16], T4[2][8 * 16];
    __shared__ u64 T5[2], T6[2];  // full, empty
    nvfuser_index_t i0 = threadIdx.y * 128 + threadIdx.x;
    for (int i = i0; i < 64 * 16; i += 256) T3[place(i / 16, i % 16)] = T0[i];
    if (i0 == 0) {
        for (int s = 0; s < 2; s++) {
            init(T5[s], 1);
            init(T6[s], 4);
        }
    }
    fence_async_shared();
    __syncthreads();
    if (threadIdx.y == 1) {
#pragma unroll 1
        for (nvfuser_index_t i1 = 0; i1 < 4 && threadIdx.x == 0; ++i1) {
            wait(T6[i1 % 2], (i1 / 2 & 1) ^ 1);
            expect(T5[i1 % 2], B_BYTES);
            tensor_load(T4[i1 % 2], T1, i1 * 16, 0, T5[i1 % 2]);  /*@load*/
            tensor_load(T4[i1 % 2] + 64, T1, i1 * 16 + 8, 0, T5[i1 % 2]);  /*@load*/
        }
    } else {
        float T7[4];
        wgmma_fence();
#pragma unroll 1
        for (nvfuser_index_t i1 = 0; i1 < 4; ++i1) {
            wait(T5[i1 % 2], i1 / 2 & 1);
            multiply(T7, operand(T3), operand(T4[i1 % 2]), i1);  /*@multiply*/
            wgmma_commit();
#ifndef RACY
            wgmma_wait<0>();
#endif
            if (threadIdx.x % 32 == 0) arrive(T6[i1 % 2]);
        }
        wgmma_wait<0>();
        write_result(T2.data, T7);
    }
}
