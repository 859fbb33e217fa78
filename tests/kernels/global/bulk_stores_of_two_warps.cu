// G11: two warps of a CTA issue bulk stores of the same bytes, and nothing orders them.
//
// launch: grid=1 block=64 arch=sm_90a
// arg:    data f32[128]=zeros
// expect: data-race WAW @copy severity=error
// result: data = np.repeat(np.arange(2), 64).astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data) {
    __shared__ alignas(128) float tiles[2][64];
    int t = threadIdx.x, warp = t / 32;
    for (int i = t; i < 128; i += 64) tiles[i / 64][i % 64] = i / 64;
    fence_async_shared();
    __syncthreads();
#ifdef RACY
    const int apart = 48;
#else
    const int apart = 64;
#endif
    if (t % 32 == 0) {
        bulk_store(data + apart * warp, tiles[warp], sizeof(tiles[warp]));  /*@copy*/
        bulk_commit();
        bulk_wait<0>();
    }
}
