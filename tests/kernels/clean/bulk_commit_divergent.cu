// Commit and wait are not collective: lanes of the issuer's warp reach them on different paths, with groups of their own or with none.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: n i32=1
// arg: out f32[64]=zeros
// result: out = x + 1
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, int n, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t] + 1;
    fence_async_shared();
    __syncthreads();
    if (t < 32) {
        if (t == 0) bulk_store(out, tile, 128);
        if (t == 5) bulk_store(out + 32, tile + 32, 128);
        if (t % 2 == 0 && n > 0) {
            bulk_commit();
            if (t == 0) bulk_wait_read<0>();
        } else {
            for (int i = 0; i < n; i++) bulk_commit();
            bulk_wait<0>();
        }
    }
    __syncthreads();
    tile[t] = 0;
    if (t == 0) bulk_wait<0>();
}
