// Waits of threads that have no bulk groups pass at once; here they protect nothing and nothing needs protection.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// result: out = x[::-1]
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    bulk_wait<0>();
    tile[63 - t] = x[t];
    fence_async_shared();
    bulk_wait_read<3>();
    __syncthreads();
    if (t == 40) {
        bulk_store(out, tile, sizeof tile);
        bulk_commit();
    }
    bulk_wait<0>();
}
