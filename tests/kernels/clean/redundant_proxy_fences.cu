// More proxy fences than anybody needs, of different width, before and after the barrier and the copy.
// launch: grid=2 block=64 arch=sm_90a
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// result: out = x * 3
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    fence_async();
    tile[t] = x[blockIdx.x * 64 + t];
    fence_async_shared();
    fence_async();
    tile[t] *= 3;
    fence_async();
    fence_async_shared();
    __syncthreads();
    fence_async();
    if (t == 0) {
        fence_async_shared();
        bulk_store(out + blockIdx.x * 64, tile, sizeof tile);
        fence_async();
        bulk_commit();
        bulk_wait<0>();
    }
    fence_async();
}
