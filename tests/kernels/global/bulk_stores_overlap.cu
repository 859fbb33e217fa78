// G11: the tiles that two CTAs store with bulk copies overlap.
//
// launch: grid=2 block=32 arch=sm_90a
// arg:    data f32[64]=zeros
// expect: global-race @copy severity=error
// result: data = np.repeat(np.arange(2), 32).astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data) {
    __shared__ alignas(128) float tile[32];
    tile[threadIdx.x] = blockIdx.x;
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x) return;
#ifdef RACY
    bulk_store(data + blockIdx.x * 28, tile, sizeof(tile));  /*@copy*/
#else
    bulk_store(data + blockIdx.x * 32, tile, sizeof(tile));
#endif
    bulk_commit();
    bulk_wait<0>();
}
