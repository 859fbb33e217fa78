// Bulk groups belong to the thread that issued them: a wait by another thread passes at once and protects nothing (R-B4).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: missing-wait WAR @store @write severity=error
// result: out = x
#include "../hopper.cuh"
#ifdef RACY
#define WAITER 32
#else
#define WAITER 0
#endif
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
        if (t == WAITER) bulk_wait_read<0>();
        __syncthreads();
    }
    if (t == 0) bulk_wait<0>();
}
