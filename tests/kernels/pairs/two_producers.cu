// Two producer warps fill the halves of a stage, one by TMA and one with ordinary stores for wgmma-like async reads by a bulk store.
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[4,256]=random
// arg: y f32[4,256]=zeros
// result: y = x
// bug 1: missing-proxy-fence the storing warp does not fence
// bug 2: missing-proxy-fence the storing warp fences before it stores
// bug 3: clean one lane of the storing warp fences for all, between two __syncwarp (D2)
// bug 4: clean the consumer fences behind its wait
// bug 5: data-race|missing-proxy-fence|deadlock|missing-wait count of full is 1: the stores are not waited for
// bug 6: missing-wait the consumer releases the stage without wait_group.read
// bug 7: data-race|missing-wait the storing warp does not wait for empty
// bug 8: clean each lane of the storing warp arrives, count 33
// bug 9: data-race|missing-proxy-fence warn lane 0 arrives without __syncwarp
#include "../hopper.cuh"
extern "C" __global__ void __launch_bounds__(96) kernel(const float* x, float* y) {
    __shared__ alignas(128) float ring[2][256];
    __shared__ alignas(8) u64 full[2], empty[2];
    const u32 t = threadIdx.x, warp = t / 32, lane = t % 32;
    if (t == 0) {
        for (int s = 0; s < 2; s++) init(full[s], BUG == 5 ? 1 : BUG == 8 ? 33 : 2), init(empty[s], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (warp == 0) {
        if (lane == 0)
#pragma unroll 1
            for (u32 k = 0; k < 4; k++) {
                const u32 s = k & 1;
                wait(empty[s], (k / 2 & 1) ^ 1);
                expect(full[s], 512);
                bulk_load(ring[s], x + k * 256, 512, full[s]);
            }
    } else if (warp == 1) {
#pragma unroll 1
        for (u32 k = 0; k < 4; k++) {
            const u32 s = k & 1;
#if BUG != 7
            wait(empty[s], (k / 2 & 1) ^ 1);
#endif
#if BUG == 2
            fence_async_shared();
#endif
            for (u32 i = lane; i < 128; i += 32) ring[s][128 + i] = x[k * 256 + 128 + i];
#if BUG == 3
            __syncwarp();
            if (lane == 5) fence_async_shared();
#elif BUG != 1 && BUG != 2 && BUG != 4
            fence_async_shared();
#endif
#if BUG == 8
            arrive(full[s]);
#else
#if BUG != 9
            __syncwarp();
#endif
            if (lane == 0 && BUG != 5) arrive(full[s]);
#endif
        }
    } else {
#pragma unroll 1
        for (u32 k = 0; k < 4; k++) {
            const u32 s = k & 1;
            if (lane == 0) {
                wait(full[s], k / 2 & 1);
#if BUG == 4
                fence_async_shared();
#endif
                bulk_store(y + k * 256, ring[s], 1024);
                bulk_commit();
#if BUG != 6
                bulk_wait_read<0>();
#endif
                arrive(empty[s]);
            }
        }
        if (lane == 0) bulk_wait<0>();
    }
}
