// Every thread fences after the barrier, the storing one among them: its fence is on the path from each write to the store.
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
    fence_async();
    if (t == 0) {
        tensor_store(out, 0, 0, tile);
        bulk_commit();
        bulk_wait<0>();
    }
}
