// The ways to announce bytes: arrive.expect_tx, expect_tx and a later arrival, several copies to one barrier, expect by another thread.
// launch: grid=1 block=128 arch=sm_90
// arg: x f32[512]=random
// arg: out f32[512]=zeros
// result: out = x
// bug 1: clean expect_tx, copies, then the arrival
// bug 2: clean the copies first, the announcement behind them: the phase cannot complete before the arrival
// bug 3: barrier-misuse|missing-wait the arrival first, then expect_tx and the copies
// bug 4: deadlock announced twice
// bug 5: barrier-misuse|missing-wait the announcement covers one of two copies
// bug 6: clean the announcement by another warp, count 2
// bug 7: missing-wait|data-race one thread waits, and no barrier behind it
// bug 8: clean one thread waits, and __syncthreads behind it
// bug 9: missing-wait|barrier-misuse try_wait once, its result ignored
// bug 10: missing-wait|data-race wait for the barrier of the first copy only
#include "../hopper.cuh"
INLINE void expect_only(u64& b, u32 n) { asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared(&b)), "r"(n) : "memory"); }
extern "C" __global__ void __launch_bounds__(128) kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[512];
    __shared__ alignas(8) u64 full, second;
    const u32 t = threadIdx.x;
    if (t == 0) {
        init(full, BUG == 6 ? 2 : 1), init(second, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t == 0) {
#if BUG == 1
        expect_only(full, 2048);
        bulk_load(tile, x, 1024, full), bulk_load(tile + 256, x + 256, 1024, full);
        arrive(full);
#elif BUG == 2
        bulk_load(tile, x, 1024, full), bulk_load(tile + 256, x + 256, 1024, full);
        expect(full, 2048);
#elif BUG == 3
        arrive(full);
        expect_only(full, 2048);
        bulk_load(tile, x, 1024, full), bulk_load(tile + 256, x + 256, 1024, full);
#elif BUG == 4
        expect_only(full, 2048);
        expect(full, 2048);
        bulk_load(tile, x, 1024, full), bulk_load(tile + 256, x + 256, 1024, full);
#elif BUG == 5
        expect(full, 1024);
        bulk_load(tile, x, 1024, full), bulk_load(tile + 256, x + 256, 1024, full);
#elif BUG == 6
        arrive(full);
        bulk_load(tile, x, 1024, full), bulk_load(tile + 256, x + 256, 1024, full);
#elif BUG == 10
        expect(full, 1024), expect(second, 1024);
        bulk_load(tile, x, 1024, full), bulk_load(tile + 256, x + 256, 1024, second);
#else
        expect(full, 2048);
        bulk_load(tile, x, 1024, full), bulk_load(tile + 256, x + 256, 1024, full);
#endif
    }
#if BUG == 6
    if (t == 32) expect(full, 2048);
#endif
#if BUG == 7 || BUG == 8
    if (t == 0) wait(full, 0);
#if BUG == 8
    __syncthreads();
#endif
#elif BUG == 9
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;}" ::"r"(shared(&full)) : "memory");
#else
    wait(full, 0);
#endif
    for (u32 i = t; i < 512; i += 128) out[i] = tile[i];
}
