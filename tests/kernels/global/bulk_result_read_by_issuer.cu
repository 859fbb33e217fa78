// G11: the thread that has issued a bulk store reads the result, and has waited for the source only. No other thread touches these bytes.
//
// launch: grid=1 block=32 arch=sm_90a
// arg:    data f32[32]=zeros
// arg:    out f32[1]=zeros
// expect: missing-wait RAW @copy @load severity=error
// result: out = np.float32([7])
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data, float* out) {
    __shared__ alignas(128) float tile[32];
    tile[threadIdx.x] = 7;
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x) return;
    bulk_store(data, tile, sizeof(tile));  /*@copy*/
    bulk_commit();
#ifdef RACY
    bulk_wait_read<0>();
#else
    bulk_wait<0>();
#endif
    out[0] = data[5];  /*@load*/
}
