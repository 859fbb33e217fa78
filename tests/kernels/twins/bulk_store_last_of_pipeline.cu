// The thread waits for its bulk stores as it goes and leaves the last one behind, as CUTLASS's epilogues for sm_100 do (R-CP5).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: lifetime @store severity=warning
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[2][64];
    int t = threadIdx.x;
    for (int k = 0; k < 4; ++k) {
        tile[k % 2][t] = x[64 * k + t];
        fence_async_shared();
        __syncthreads();
        if (t == 0) {
            bulk_store(out + 64 * k, tile[k % 2], sizeof tile[0]);  /*@store*/
            bulk_commit();
            bulk_wait_read<1>();
        }
        __syncthreads();
    }
#ifndef RACY
    if (t == 0) bulk_wait_read<0>();
#endif
}
