// G11: all lanes of a warp issue a bulk store to the same bytes. From one source it is one value (CUTLASS stores its tiles so), also where
// one lane has committed more groups (its grouped GEMM, for tensor maps); of two it is a race.
//
// launch: grid=1 block=64 arch=sm_90a
// arg:    data f32[64]=zeros
// expect: data-race WAW @store @store severity=error
// backends: cpu
// result: data = np.arange(64, dtype=np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data) {
    __shared__ alignas(128) float one[64], other[64];
    int t = threadIdx.x;
    one[t] = t;
    other[t] = 1;
    fence_async_shared();
    __syncthreads();
    if (t == 0) bulk_commit();
    if (t < 32) {
#ifdef RACY
        const float* from = t % 2 ? other : one;
#else
        const float* from = one;
#endif
        bulk_store(data, from, sizeof(one));  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
