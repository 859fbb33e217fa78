// The issuer of a bulk store waits until its source has been read, but the others do not wait for the issuer (R-B2).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: missing-wait WAR @store @write severity=error
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    for (int k = 0; k < 2; k++) {
        tile[t] = x[k * 64 + t];  /*@write*/
        fence_async_shared();
        __syncthreads();
        if (t == 0) {
            bulk_store(out + k * 64, tile, sizeof tile);  /*@store*/
            bulk_commit();
        }
#ifdef RACY
        __syncthreads();
#endif
        if (t == 0) bulk_wait_read<0>();
#ifndef RACY
        __syncthreads();
#endif
    }
    if (t == 0) bulk_wait<0>();
}
