// A circular buffer of three stages, with K split over the grid. The loop copies two stages beyond its end (zeros, by predicate), and the
// epilogue puts its tile where the first of them lands: nothing waits for it.
// launch: grid=1x1x2 block=32x4 smem=3072
// arg: T0 tensor:f32[16,64]=random
// arg: T1 tensor:f32[64,16]=random
// arg: T2 tensor:f32[2,16,16]=zeros
// expect: missing-wait WAW @copy @store severity=error
// allow: missing-wait @copy @read
// result: T2 = np.stack([T0[:, :32] @ T1[:32], T0[:, 32:] @ T1[32:]])
#include "../nvfuser.cuh"
extern "C" __global__ void kernel(Tensor<float, 2, 2> T0, Tensor<float, 2, 2> T1, Tensor<float, 3, 3> T2) {
    alignas(16) extern __shared__ char array[];
    const unsigned smem_offset = 0;
    nvfuser_index_t i0 = threadIdx.y * 32 + threadIdx.x, i1 = i0 % 32;
    nvfuser_index_t i2 = blockIdx.z * 32;  // this CTA's part of K
    float* T3 = reinterpret_cast<float*>(array + smem_offset);  // stages: 16x8 of T0, then 8x16 of T1
    auto load = [&](nvfuser_index_t i3) {
        float* stage = &T3[i3 % 3 * 256];
        bool b4 = i3 < 4;
        nvfuser_index_t i5 = b4 ? i2 + 8 * i3 : 0;
        if (threadIdx.y == 0) copy_or_clear(&stage[i1 * 4], &T0[i1 / 2 * T0.alloc_stride[0] + i5 + i1 % 2 * 4], b4);  /*@copy*/
        if (threadIdx.y == 1) copy_or_clear(&stage[128 + i1 * 4], &T1[(i5 + i1 / 4) * T1.alloc_stride[0] + i1 % 4 * 4], b4);  /*@copy*/
        copy_commit();
    };
    float T4[2] = {0, 0};
    load(0);
    load(1);
#pragma unroll 1
    for (nvfuser_index_t i3 = 0; i3 < 4; ++i3) {
        copies_wait<1>();
        __syncthreads();
        float* stage = &T3[i3 % 3 * 256];
        for (int k = 0; k < 8; k++)
            for (int i = 0; i < 2; i++) T4[i] += stage[(i0 / 16 + 8 * i) * 8 + k] * stage[128 + k * 16 + i0 % 16];
        load(i3 + 2);
    }
#ifndef RACY
    copies_wait<0>();
#endif
    __syncthreads();
    float* T5 = reinterpret_cast<float*>(array + smem_offset + 1024);
    for (int i = 0; i < 2; i++) T5[i0 + 128 * i] = T4[i];  /*@store*/
    __syncthreads();
    for (int i = 0; i < 2; i++) T2[blockIdx.z * T2.alloc_stride[0] + i0 * 2 + i] = T5[i0 * 2 + i];  /*@read*/
}
