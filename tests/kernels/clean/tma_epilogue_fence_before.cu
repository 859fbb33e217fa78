// The TMA store of an epilogue as the manuals show it: every writer fences, then a barrier, then one thread stores.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f32[1024]=arange
// arg: out tma:f32[32,32]=zeros,box=8x32,swizzle=128
// result: out = x.reshape(32, 32) * 2
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap out) {
    __shared__ alignas(1024) float tile[256];
    int t = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < 4; k++) {
        if (t == 0) bulk_wait_read<0>();
        __syncthreads();
        for (int i = t; i < 256; i += 128) tile[i / 32 * 32 + ((i % 32 / 4 ^ i / 32) * 4) + i % 4] = x[k * 256 + i] * 2;
        fence_async_shared();
        __syncthreads();
        if (t == 0) {
            tensor_store(out, 0, k * 8, tile);
            bulk_commit();
        }
    }
    if (t == 0) bulk_wait<0>();
}
