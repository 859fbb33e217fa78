// The thread that issues the bulk store waits until it has read its source, and no barrier lies between that wait and the writes of the next round
// (R-B2). Another warp writes before the store is issued.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: data-race WAR @store @write severity=error
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    for (int k = 0; k < 4; k++) {
        tile[t] = x[k * 64 + t];  /*@write*/
        fence_async_shared();
        __syncthreads();
        if (t == 0) {
            bulk_store(out + k * 64, tile, sizeof tile);  /*@store*/
            bulk_commit();
            bulk_wait_read<0>();
        }
#ifndef RACY
        __syncthreads();
#endif
    }
    if (t == 0) bulk_wait<0>();
}
