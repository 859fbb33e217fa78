// sm_100a: TMA -> tcgen05.mma -> tcgen05.ld -> shared staging -> TMA store; two accumulators, epilogue overlapped with the next tile.
// launch: grid=1 block=192 arch=sm_100a
// arg: a f16[8,2048]=random
// arg: b f16[8,1024]=random
// arg: out f32[4,128,64]=zeros
// bug 1: missing-wait|data-race accumulator of parity is never released: empty wait missing
// bug 2: missing-wait commit to the accumulator's barrier before the last product
// bug 3: missing-proxy-fence no proxy fence before the TMA store of the staging buffer
// bug 4: missing-wait|data-race staging is rewritten before the store has read it
// bug 5: data-race|missing-wait the epilogue loads the other accumulator
// bug 6: tcgen05-misuse|data-race warps of the epilogue use the lanes of warp 0
// bug 7: deadlock the accumulator's barrier counts 2
// bug 8: missing-wait|data-race|deadlock the epilogue arrives with one thread only, count 1, before the others have loaded
// bug 9: clean count 4, one lane per warp, behind wait::ld
// bug 10: missing-wait|data-race count 4, one lane per warp, before wait::ld
// bug 11: missing-wait|data-race|deadlock the wait for acc_empty always has parity 1
// bug 12: clean dealloc by warp 0 behind the last named barrier, by which all have loaded
// bug 13: uninitialized-read the first product accumulates
// bug 14: tcgen05-misuse alloc of 96 columns
// bug 15: tcgen05-misuse dealloc of 64 of 128 columns
#include "../blackwell.cuh"
enum { TILES = 4, STEPS = 2 };
extern "C" __global__ void __launch_bounds__(192) kernel(const f16* a, const f16* b, float* out) {
    __shared__ alignas(128) f16 A[2][2048], B[2][1024];
    __shared__ alignas(128) float stage[128 * 64];
    __shared__ alignas(8) u64 full[2], empty[2], acc_full[2], acc_empty[2];
    __shared__ u32 base;
    const u32 t = threadIdx.x, warp = t / 32;
    if (t == 0) {
        for (int s = 0; s < 2; s++) {
            init(full[s], 1), init(empty[s], 1), init(acc_full[s], BUG == 7 ? 2 : 1);
            init(acc_empty[s], BUG == 8 ? 1 : BUG == 9 || BUG == 10 ? 4 : 128);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (warp == 0) alloc(base, BUG == 14 ? 96 : 128), relinquish();
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    if (t == 128) {
#pragma unroll 1
        for (int k = 0; k < TILES * STEPS; k++) {
            int s = k % 2;
            wait(empty[s], (k / 2 & 1) ^ 1);
            expect(full[s], 4096 + 2048);
            bulk_load(A[s], a + k * 2048, 4096, full[s]);
            bulk_load(B[s], b + k * 1024, 2048, full[s]);
        }
    } else if (t == 160) {
#pragma unroll 1
        for (int k = 0; k < TILES * STEPS; k++) {
            int s = k % 2, tile = k / STEPS, acc = tile % 2;
            if (k % STEPS == 0) {
#if BUG == 11
                wait(acc_empty[acc], 1);
#elif BUG != 1
                wait(acc_empty[acc], (tile / 2 & 1) ^ 1);
#endif
                fence_after_sync();
            }
            wait(full[s], k / 2 & 1);
            fence_after_sync();
#if BUG == 2
            if (k % STEPS == STEPS - 1) commit_to(acc_full[acc]);
#endif
            multiply(base + acc * 64, A[s], B[s], BUG == 13 ? 1 : k % STEPS != 0);
            commit_to(empty[s]);
#if BUG != 2
            if (k % STEPS == STEPS - 1) commit_to(acc_full[acc]);
#endif
        }
    } else if (warp < 4) {
#pragma unroll 1
        for (int tile = 0; tile < TILES; tile++) {
            int acc = tile % 2;
            wait(acc_full[acc], tile / 2 & 1);
            fence_after_sync();
#if BUG != 4
            if (t == 0) bulk_wait_read<0>();
#endif
            asm volatile("bar.sync 1, 128;" ::: "memory");
#if BUG == 8
            fence_before_sync();
            if (t == 0) arrive(acc_empty[acc]);
#endif
#pragma unroll 1
            for (u32 column = 0; column < 64; column += 8) {
                float v[8];
#if BUG == 5
                load(v, own_lanes(base + (acc ^ 1) * 64) + column);
#elif BUG == 6
                load(v, base + (warp == 3 ? 2 << 21 : warp << 21) + acc * 64 + column);
#else
                load(v, own_lanes(base + acc * 64) + column);
#endif
#if BUG == 10
                if (column == 56 && t % 32 == 0) fence_before_sync(), arrive(acc_empty[acc]);
#endif
                wait_loads();
                for (u32 i = 0; i < 8; i++) stage[t * 64 + column + i] = v[i];
            }
#if BUG == 9
            fence_before_sync();
            __syncwarp();
            if (t % 32 == 0) arrive(acc_empty[acc]);
#elif BUG != 8 && BUG != 10
            fence_before_sync();
            arrive(acc_empty[acc]);
#endif
#if BUG != 3
            fence_async_shared();
#endif
            asm volatile("bar.sync 1, 128;" ::: "memory");
            if (t == 0) bulk_store(out + tile * 8192, stage, 32768), bulk_commit();
        }
        if (t == 0) bulk_wait<0>();
    }
#if BUG != 12
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
#endif
    if (warp == 0) dealloc(base, BUG == 15 ? 64 : BUG == 14 ? 96 : 128);
}
