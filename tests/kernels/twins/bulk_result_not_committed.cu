// A bulk store is waited for before it is committed, so the wait covers nothing, and its result is used (R-B3, R-B5).
// launch: grid=1 block=32 arch=sm_90a
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// arg: copy f32[1]=zeros
// expect: missing-wait @store @load severity=error
// result: copy = np.full(1, 7, np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out, float* copy) {
    __shared__ alignas(128) float tile[32];
    u32 t = threadIdx.x;
    tile[t] = x[t];
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        bulk_store(out, tile, sizeof(tile)); /*@store*/
#ifndef RACY
        bulk_commit();
#endif
        bulk_wait<0>();
        copy[0] = out[7]; /*@load*/
#ifdef RACY
        bulk_commit();
        bulk_wait<0>();
#endif
    }
}
