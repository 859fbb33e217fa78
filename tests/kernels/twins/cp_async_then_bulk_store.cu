// What cp.async has brought is generic data: waited for and passed by a barrier, it still needs a proxy fence before a bulk store.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: missing-proxy-fence @copy @store severity=error
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[256];
    int t = threadIdx.x;
    copy16(tile + 4 * t, x + 4 * t);  /*@copy*/
    copy_wait();
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
