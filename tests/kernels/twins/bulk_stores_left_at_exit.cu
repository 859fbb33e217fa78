// A ring of two buffers: in the loop the thread waits until all but the newest store have read their source, and not for the last two (R-CP5).
// launch: grid=1 block=32 arch=sm_90a
// arg: out f32[4,32]=zeros
// expect: lifetime @store severity=warning
// result: out = np.arange(4)[:, None] + np.zeros((4, 32), np.float32)
// backends: cpu
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* out) {
    __shared__ alignas(128) float tile[2][32];
    for (u32 round = 0; round < 4; ++round) {
        if (threadIdx.x == 0) bulk_wait_read<1>();
        __syncwarp();
        tile[round % 2][threadIdx.x] = round;
        fence_async_shared();
        __syncwarp();
        if (threadIdx.x == 0) {
            bulk_store(out + round * 32, tile[round % 2], 128);  /*@store*/
            bulk_commit();
        }
    }
#ifndef RACY
    if (threadIdx.x == 0) bulk_wait_read<0>();
#endif
}
