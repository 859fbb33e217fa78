// sm_100a GEMM: producer thread (bulk loads), issuer thread (tcgen05.mma), epilogue warps; two accumulators.
// launch: grid=1 block=192 arch=sm_100a
// arg: a f16[8,2048]=random
// arg: b f16[8,1024]=random
// arg: out f32[2,128,64]=zeros
// bug 1: missing-wait epilogue does not wait for the commit
// bug 2: missing-wait the stage is released by an arrival, not by a commit
// bug 3: data-race|missing-wait the accumulator is not released: issuer does not wait
// bug 4: missing-wait wait::ld missing before the release
// bug 5: tcgen05-misuse not freed
// bug 6: missing-wait|deadlock|barrier-misuse wrong parity of the accumulator's barrier
// bug 7: data-race|missing-wait|tcgen05-misuse freed before the other warps have loaded
// bug 8: missing-wait issuer does not wait for full
#include "../blackwell.cuh"
enum { STAGES = 2, TILES = 2, STEPS = 4 };
extern "C" __global__ void __launch_bounds__(192) kernel(const f16* a, const f16* b, float* out) {
    __shared__ alignas(128) f16 A[STAGES][2048], B[STAGES][1024];
    __shared__ alignas(8) u64 full[STAGES], empty[STAGES], ready, taken;
    __shared__ u32 base;
    const u32 t = threadIdx.x, warp = t / 32;
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) init(full[s], 1), init(empty[s], 1);
        init(ready, 1), init(taken, 128);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (warp == 0) alloc(base, COLUMNS), relinquish();
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    const u32 d = base;
    if (t == 128) {
#pragma unroll 1
        for (int k = 0; k < TILES * STEPS; k++) {
            int s = k % STAGES;
            wait(empty[s], (k / STAGES & 1) ^ 1);
            expect(full[s], 4096 + 2048);
            bulk_load(A[s], a + k * 2048, 4096, full[s]);
            bulk_load(B[s], b + k * 1024, 2048, full[s]);
        }
    } else if (t == 160) {
#pragma unroll 1
        for (int k = 0; k < TILES * STEPS; k++) {
            int s = k % STAGES, tile = k / STEPS;
#if BUG != 3
            if (k % STEPS == 0) {
                wait(taken, (tile & 1) ^ 1);
                fence_after_sync();
            }
#endif
#if BUG != 8
            wait(full[s], k / STAGES & 1);
#endif
            fence_after_sync();
            multiply(d, A[s], B[s], k % STEPS != 0);
#if BUG == 2
            arrive(empty[s]);
#else
            commit_to(empty[s]);
#endif
            if (k % STEPS == STEPS - 1) commit_to(ready);
        }
    } else if (warp < 4) {
#pragma unroll 1
        for (int tile = 0; tile < TILES; tile++) {
#if BUG == 6
            wait(ready, (tile & 1) ^ 1);
#elif BUG != 1
            wait(ready, tile & 1);
#endif
            fence_after_sync();
            for (u32 column = 0; column < COLUMNS; column += 8) {
                float v[8];
                load(v, own_lanes(d) + column);
#if BUG != 4
                wait_loads();
#endif
#if BUG == 4
                if (column + 8 < COLUMNS) wait_loads();
                else { fence_before_sync(); arrive(taken); }
#endif
                put(out + tile * 128 * 64, column, v);
            }
#if BUG != 4
            fence_before_sync();
            arrive(taken);
#endif
        }
    }
#if BUG == 7
    if (warp == 0) dealloc(d, COLUMNS);
#else
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
#if BUG != 5
    if (warp == 0) dealloc(d, COLUMNS);
#endif
#endif
}
