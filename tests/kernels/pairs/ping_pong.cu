// Ping-pong of two consumer warpgroups ordered by named barriers, as CUTLASS's OrderedSequenceBarrier, with a shared staging buffer.
// launch: grid=1 block=256 arch=sm_90a
// arg: a f16[8,1024]=random
// arg: b f16[8,128]=random
// arg: out f32[8,512]=zeros
// bug 1: data-race|missing-wait order barrier missing before the staging buffer is used
// bug 2: deadlock both groups start by waiting
// bug 3: missing-wait staging is handed over before the store has read it
// bug 4: missing-proxy-fence no fence before the store
// bug 5: barrier-misuse|deadlock counts 128 at the order barrier
// bug 6: data-race|barrier-misuse|missing-wait|deadlock the groups use one id for both directions
// bug 7: clean both groups use one id for the barrier within the group: they never do so at one time
// bug 8: data-race|missing-wait arrive comes before the store is waited for by thread 0
#include "../hopper.cuh"
template <int ID, int N> INLINE void bar_sync() { asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(N) : "memory"); }
template <int ID, int N> INLINE void bar_arrive() { asm volatile("bar.arrive %0, %1;" ::"n"(ID), "n"(N) : "memory"); }
INLINE void wait_turn(u32 group) {
#if BUG == 5
    if (group == 0) bar_sync<2, 128>(); else bar_sync<3, 128>();
#elif BUG == 6
    bar_sync<2, 256>();
#else
    if (group == 0) bar_sync<2, 256>(); else bar_sync<3, 256>();
#endif
}
INLINE void give_turn(u32 group) {
#if BUG == 5
    if (group == 0) bar_arrive<3, 128>(); else bar_arrive<2, 128>();
#elif BUG == 6
    bar_arrive<2, 256>();
#else
    if (group == 0) bar_arrive<3, 256>(); else bar_arrive<2, 256>();
#endif
}
extern "C" __global__ void __launch_bounds__(256) kernel(const f16* a, const f16* b, float* out) {
    __shared__ alignas(128) f16 A[2][1024], B[2][128];
    __shared__ alignas(128) float stage[512];
    __shared__ alignas(8) u64 full[2];
    const u32 t = threadIdx.x, group = t / 128;
    if (t == 0) {
        init(full[0], 1), init(full[1], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
#if BUG != 2
    if (group == 1) bar_arrive<2, BUG == 5 ? 128 : 256>();
#endif
#pragma unroll 1
    for (u32 k = 0; k < 4; k++) {
        u32 tile = k * 2 + group;
        if (t % 128 == 0) {
            expect(full[group], 2048 + 256);
            bulk_load(A[group], a + tile * 1024, 2048, full[group]);
            bulk_load(B[group], b + tile * 128, 256, full[group]);
        }
        wait(full[group], k & 1);
        float d[4] = {};
        keep(d);
        wgmma_fence();
        multiply(d, operand(A[group]), operand(B[group]), 0);
        wgmma_commit();
        wgmma_wait<0>();
        keep(d);
#if BUG != 1
        wait_turn(group);
#endif
        write_result(stage, d);
#if BUG != 4
        fence_async_shared();
#endif
#if BUG == 7
        bar_sync<4, 128>();
#else
        if (group == 0) bar_sync<4, 128>(); else bar_sync<5, 128>();
#endif
        if (t % 128 == 0) {
            bulk_store(out + tile * 512, stage, 2048);
            bulk_commit();
#if BUG != 3 && BUG != 8
            bulk_wait_read<0>();
#endif
        }
#if BUG == 1
        if (group == 0) bar_sync<4, 128>(); else bar_sync<5, 128>();
#else
        if (k < 3 || group == 0) give_turn(group);
#endif
#if BUG == 8
        if (t % 128 == 0) bulk_wait_read<0>();
#endif
    }
    if (t % 128 == 0) bulk_wait<0>();
}
