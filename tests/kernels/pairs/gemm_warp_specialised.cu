// Warp-specialised: producer warp loads A and B tiles by bulk copies, two consumer warpgroups multiply by wgmma, output by bulk store.
// launch: grid=1 block=384 arch=sm_90a
// arg: a f16[8,2,1024]=random
// arg: b f16[8,128]=random
// arg: out f32[2,64,8]=zeros
// bug 1: missing-wait|deadlock consumer does not wait for the full barrier parity flip (always 0)
// bug 2: missing-wait|data-race producer does not wait for empty
// bug 3: deadlock producer waits for the wrong parity of empty
// bug 4: missing-wait empty is signalled before wgmma.wait_group
// bug 5: missing-wait wait_group 1 before the signal of the current stage
// bug 6: barrier-misuse|deadlock|missing-wait|data-race empty barrier counts 1 instead of 2
// bug 7: missing-proxy-fence no proxy fence before the bulk store of the output
// bug 8: data-race named barrier of the epilogue missing
// bug 9: lifetime|missing-wait the last store is not waited for before the exit
// bug 10: deadlock|barrier-misuse|missing-wait expect bytes of A alone
// bug 12: barrier-misuse|data-race both warpgroups use named barrier 1
// bug 13: barrier-misuse init not published (no barrier)
#include "../hopper.cuh"
enum { STAGES = 3, TILES = 8 };
template <int ID> INLINE void named() { asm volatile("bar.sync %0, 128;" ::"n"(ID) : "memory"); }
extern "C" __global__ void __launch_bounds__(384) kernel(const f16* a, const f16* b, float* out) {
    __shared__ alignas(128) f16 A[STAGES][2][1024], B[STAGES][128];
    __shared__ alignas(128) float staged[2][512];
    __shared__ alignas(8) u64 full[STAGES], empty[STAGES];
    const u32 t = threadIdx.x, group = t / 128;
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            init(full[s], 1);
#if BUG == 6
            init(empty[s], 1);
#else
            init(empty[s], 2);
#endif
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
#if BUG != 13
    __syncthreads();
#endif
    if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (t == 256) {
#pragma unroll 1
            for (int k = 0; k < TILES; k++) {
                int s = k % STAGES;
                u32 phase = k / STAGES & 1;
#if BUG == 2
#elif BUG == 3
                wait(empty[s], phase);
#else
                wait(empty[s], phase ^ 1);
#endif
#if BUG == 10
                expect(full[s], 4096);
#else
                expect(full[s], 4096 + 256);
#endif
                bulk_load(A[s], a + k * 2048, 4096, full[s]);
                bulk_load(B[s], b + k * 128, 256, full[s]);
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    float d[4] = {};
#pragma unroll 1
    for (int k = 0; k < TILES; k++) {
        int s = k % STAGES;
#if BUG == 1
        wait(full[s], 0);
#else
        wait(full[s], k / STAGES & 1);
#endif
        keep(d);
        wgmma_fence();
        multiply(d, operand(A[s][group]), operand(B[s]), k != 0);
        wgmma_commit();
#if BUG == 4
        if (t % 128 == 0) arrive(empty[s]);
        wgmma_wait<0>();
#elif BUG == 5
        wgmma_wait<1>();
        if (t % 128 == 0) arrive(empty[s]);
#else
        wgmma_wait<0>();
        if (t % 128 == 0) arrive(empty[s]);
#endif
        keep(d);
    }
    wgmma_wait<0>();
    keep(d);
    write_result(staged[group], d);
#if BUG != 7
    fence_async_shared();
#endif
#if BUG == 8
#elif BUG == 12
    named<1>();
#else
    if (group == 0) named<1>();
    else named<2>();
#endif
    if (t % 128 == 0) {
        bulk_store(out + group * 512, staged[group], 2048);
        bulk_commit();
#if BUG != 9
        bulk_wait_read<0>();
#endif
    }
}
