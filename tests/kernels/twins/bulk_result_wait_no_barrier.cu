// The thread that issued a bulk store waits for all of it, but the others read the result with no barrier after that wait (R-B3).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// arg: copy f32[64]=zeros
// expect: missing-wait @store @load severity=error
// result: copy = np.arange(64).astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out, float* copy) {
    __shared__ alignas(128) float tile[64];
    u32 t = threadIdx.x;
    tile[t] = x[t];
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        bulk_store(out, tile, sizeof(tile)); /*@store*/
        bulk_commit();
    }
#ifdef RACY
    __syncthreads();
    if (t == 0) bulk_wait<0>();
#else
    if (t == 0) bulk_wait<0>();
    __syncthreads();
#endif
    copy[t] = out[t]; /*@load*/
}
