// CTA 0 computes a tile with ordinary stores, CTA 1 loads it by TMA: flag, and proxy fences on both sides.
// launch: grid=2 block=128 arch=sm_90
// arg: x f32[256]=random
// arg: work f32[256]=zeros
// arg: flag u32[1]=zeros
// arg: y f32[256]=zeros
// result: y = x * 2 + 1
// bug 1: missing-proxy-fence no proxy fence on either side
// bug 2: clean fence by the writers only (D14)
// bug 3: clean fence by the reader only (D14)
// bug 4: global-race no barrier before the flag
// bug 5: global-race flag is stored relaxed, without a fence
// bug 6: global-race the poll is relaxed, without a fence
// bug 7: scope flag of cta scope
// bug 8: missing-proxy-fence both fences are of shared memory
// bug 9: global-race the copy is issued before the flag was seen
// bug 10: global-race the copy is issued by a thread that has not polled
// bug 11: clean a barrier between the poll and the issuing thread
#include "../hopper.cuh"
extern "C" __global__ void __launch_bounds__(128) kernel(const float* x, float* work, u32* flag, float* y) {
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(8) u64 full;
    const u32 t = threadIdx.x;
    if (blockIdx.x == 0) {
        for (u32 i = t; i < 256; i += 128) work[i] = x[i] * 2;
#if BUG == 8
        fence_async_shared();
#elif BUG != 1 && BUG != 3
        fence_async_global();
#endif
#if BUG != 4
        __syncthreads();
#endif
        if (t == 0) {
#if BUG == 5
            asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
#elif BUG == 7
            asm volatile("st.release.cta.global.u32 [%0], 1;" ::"l"(flag) : "memory");
#else
            asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
#endif
        }
        return;
    }
    if (t == 0) {
        init(full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t == 0) {
        u32 seen;
#if BUG == 9
        expect(full, 1024), bulk_load(tile, work, 1024, full);
#endif
        do {
#if BUG == 6
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
#else
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
#endif
        } while (!seen);
#if BUG == 8
        fence_async_shared();
#elif BUG != 1 && BUG != 2
        fence_async_global();
#endif
#if BUG != 9 && BUG != 10 && BUG != 11
        expect(full, 1024), bulk_load(tile, work, 1024, full);
#endif
    }
#if BUG == 11
    __syncthreads();
#endif
#if BUG == 10 || BUG == 11
    if (t == 64) expect(full, 1024), bulk_load(tile, work, 1024, full);
#endif
    wait(full, 0);
    for (u32 i = t; i < 256; i += 128) y[i] = tile[i] + 1;
}
