// The tensor ends within the boxes, below and to the right. Only what lies inside is written to shared memory and only that is stored:
// 10 rows of 40 columns, in boxes of 8 by 32.
// launch: grid=2x2 block=64 arch=sm_90a
// arg: x f32[10,40]=arange
// arg: out tma:f32[10,40]=zeros,box=8x32,swizzle=128
// result: out = x * 2
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap out) {
    __shared__ alignas(1024) float tile[256];
    int t = threadIdx.x, top = blockIdx.y * 8, left = blockIdx.x * 32;
    for (int i = t; i < 256; i += 64) {
        int row = i / 32, column = i % 32;
        if (top + row < 10 && left + column < 40) tile[row * 32 + ((column / 4 ^ row) * 4) + column % 4] = x[(top + row) * 40 + left + column] * 2;
    }
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        tensor_store(out, left, top, tile);
        bulk_commit();
        bulk_wait<0>();
    }
}
