// Stencil with a halo: the tile by a bulk load, the halo by ordinary loads and stores into the same buffer, three rounds over one buffer.
// launch: grid=4 block=128 arch=sm_90
// arg: x f32[3,528]=random
// arg: out f32[3,512]=zeros
// bug 1: data-race no barrier between the halo and the sum
// bug 2: missing-wait only warp 0 waits for the tile
// bug 3: data-race|missing-wait the next load is issued before the last sum
// bug 4: missing-wait|data-race the load covers the halo that threads store
// bug 5: clean the load covers the halo, and threads store it behind the wait and a barrier
// bug 6: clean the wait comes before the halo is stored
// bug 7: missing-wait parity is not flipped
// bug 8: clean --policy default: no proxy fence between the reads of a round and the next load (D1)
#include "../hopper.cuh"
extern "C" __global__ void __launch_bounds__(128) kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[136];
    __shared__ alignas(8) u64 full;
    const u32 t = threadIdx.x, b = blockIdx.x * 128;
    if (t == 0) {
        init(full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const u32 bytes = BUG == 4 || BUG == 5 ? 544 : 512;
    if (t == 0) expect(full, bytes), bulk_load(tile, x + b, bytes, full);
#pragma unroll 1
    for (u32 k = 0; k < 3; k++) {
#if BUG == 5
        wait(full, k & 1);
        __syncthreads();
#elif BUG == 6
        wait(full, k & 1);
#endif
        if (t < 8) tile[128 + t] = x[k * 528 + b + 128 + t];
#if BUG == 2
        if (t < 32) wait(full, k & 1);
#elif BUG == 7
        wait(full, 0);
#elif BUG != 5 && BUG != 6
        wait(full, k & 1);
#endif
#if BUG != 1 && BUG != 2
        __syncthreads();
#endif
#if BUG == 3
        if (t == 0 && k < 2) expect(full, bytes), bulk_load(tile, x + (k + 1) * 528 + b, bytes, full);
#endif
        out[k * 512 + b + t] = tile[t] + tile[t + 8];
        __syncthreads();
#if BUG != 3
        if (t == 0 && k < 2) {
#if BUG != 8
            fence_async_shared();
#endif
            expect(full, bytes), bulk_load(tile, x + (k + 1) * 528 + b, bytes, full);
        }
#endif
    }
}
