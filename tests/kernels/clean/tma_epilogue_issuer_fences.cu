// Only the thread that stores fences, after the barrier: accepted unless the strict reading is asked for (D2, and the twin of this name).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[256]=arange
// arg: out tma:f32[8,32]=zeros,box=8x32
// result: out = x.reshape(8, 32) * 2
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap out) {
    __shared__ alignas(128) float tile[256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 64) tile[i] = x[i] * 2;
    __syncthreads();
    if (t == 0) {
        fence_async();
        tensor_store(out, 0, 0, tile);
        bulk_commit();
        bulk_wait<0>();
    }
}
