// The epilogue takes the operands' memory over while other warps still read them: the barrier before the reuse is missing.
// launch: grid=1 block=32x4 smem=2048
// arg: T0 tensor:f32[16,16]=random
// arg: T1 tensor:f32[16,16]=random
// arg: T2 tensor:f32[16,16]=zeros
// expect: data-race WAR @operand @store severity=error
// result: T2 = T0 @ T1
#include "../nvfuser.cuh"
extern "C" __global__ void kernel(Tensor<float, 2, 2> T0, Tensor<float, 2, 2> T1, Tensor<float, 2, 2> T2) {
    alignas(16) extern __shared__ char array[];
    const unsigned smem_offset = 0;
    nvfuser_index_t i0 = threadIdx.y * 32 + threadIdx.x;
    float* T4 = reinterpret_cast<float*>(array + smem_offset + 1024);
    float* T3 = reinterpret_cast<float*>(array + smem_offset);
    for (int i = 0; i < 2; i++) {
        T3[i0 + 128 * i] = T0[i0 + 128 * i];
        T4[i0 + 128 * i] = T1[i0 + 128 * i];
    }
    __syncthreads();
    float T5[2] = {0, 0};
#pragma unroll 1
    for (int k = 0; k < 16; k++) {
        for (int i = 0; i < 2; i++) T5[i] += T3[(i0 / 16 + 8 * i) * 16 + k] * T4[k * 16 + i0 % 16];  /*@operand*/
    }
#ifndef RACY
    __syncthreads();
#endif
    float* T6 = reinterpret_cast<float*>(array + smem_offset + 1024);  // the memory of T4 again
    for (int i = 0; i < 2; i++) T6[i0 + 128 * i] = T5[i];  /*@store*/
    __syncthreads();
    for (int i = 0; i < 2; i++) T2[i0 * 2 + i] = T6[i0 * 2 + i];
}
