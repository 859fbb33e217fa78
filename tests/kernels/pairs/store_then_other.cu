// A bulk store's result is used by another CTA (flag), by the own CTA's loads, by a bulk load, and by generic stores over it.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[256]=random
// arg: work f32[256]=zeros
// arg: flag u32[1]=zeros
// arg: y f32[256]=zeros
// result: y = x + 2
// bug 1: missing-wait wait_group.read before the flag
// bug 2: missing-wait|global-race no wait
// bug 3: global-race relaxed flag
// bug 4: missing-wait another thread sets the flag, behind a barrier, wait_group.read
// bug 5: clean another thread sets the flag behind a barrier and wait_group
// bug 6: missing-wait another thread waits for the group
// bug 7: clean reader loads by TMA
// bug 8: scope red.release.cta on the flag
// bug 9: clean red.release.gpu on the flag
#include "../hopper.cuh"
extern "C" __global__ void __launch_bounds__(64) kernel(const float* x, float* work, u32* flag, float* y) {
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(8) u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) init(full, 1), fence_async_shared();
    __syncthreads();
    if (blockIdx.x == 0) {
        for (u32 i = t; i < 256; i += 64) tile[i] = x[i] + 1;
        fence_async_shared();
        __syncthreads();
        if (t == 0) {
            bulk_store(work, tile, 1024), bulk_commit();
#if BUG == 1 || BUG == 4
            bulk_wait_read<0>();
#elif BUG == 6
            bulk_wait_read<0>();
#elif BUG != 2
            bulk_wait<0>();
#endif
        }
#if BUG == 4 || BUG == 5 || BUG == 6
        __syncthreads();
#if BUG == 6
        if (t == 32) bulk_wait<0>();
#endif
        if (t == 32) {
#else
        if (t == 0) {
#endif
#if BUG == 3
            asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
#elif BUG == 8
            asm volatile("red.release.cta.global.add.u32 [%0], 1;" ::"l"(flag) : "memory");
#elif BUG == 9
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(flag) : "memory");
#else
            asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
#endif
        }
        if (t == 0) bulk_wait<0>();
    } else {
        if (t == 0) {
            u32 n;
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(flag) : "memory");
            while (!n);
#if BUG == 7
            fence_async();
            expect(full, 1024), bulk_load(tile, work, 1024, full);
#endif
        }
        __syncthreads();
#if BUG == 7
        wait(full, 0);
        for (u32 i = t; i < 256; i += 64) y[i] = tile[i] + 1;
#else
        for (u32 i = t; i < 256; i += 64) y[i] = work[i] + 1;
#endif
    }
}
