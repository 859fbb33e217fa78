// G11: two bulk stores of one thread write the same bytes, and the first is not over when the second is issued.
//
// launch: grid=1 block=64 arch=sm_90a
// arg:    data f32[64]=zeros
// expect: missing-wait WAW @first @second severity=error
// result: data = np.arange(64, dtype=np.float32) + 1
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data) {
    __shared__ alignas(128) float tiles[2][64];
    int t = threadIdx.x;
    tiles[0][t] = t, tiles[1][t] = t + 1;
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        bulk_store(data, tiles[0], sizeof(tiles[0]));  /*@first*/
        bulk_commit();
#ifdef RACY
        bulk_wait_read<0>();
#else
        bulk_wait<0>();
#endif
        bulk_store(data, tiles[1], sizeof(tiles[1]));  /*@second*/
        bulk_commit();
        bulk_wait<0>();
    }
}
