// Ordinary stores fill the tile and a bulk copy stores it: a barrier alone does not take the writes to the async proxy (R-B9).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: missing-proxy-fence @write @store severity=error
// result: out = 2 * x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    tile[t] = 2 * x[t];  /*@write*/
#ifndef RACY
    fence_async_shared();
#endif
    __syncthreads();
    if (t == 0) {
        bulk_store(out, tile, sizeof tile);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
