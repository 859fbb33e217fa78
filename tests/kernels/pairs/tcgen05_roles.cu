// sm_100a: one warp allocates and multiplies, four warps drain; two accumulators in turn; relinquish early; dealloc behind a barrier.
// launch: grid=1 block=160 arch=sm_100a
// arg: x f16[2048]=random
// arg: y f16[1024]=random
// arg: out f32[3,128,64]=zeros
// bug 1: missing-wait no wait::ld before the accumulator is released
// bug 2: data-race the product does not wait until the accumulator is drained
// bug 3: tcgen05-misuse the drain warps use the lanes of warp index, without modulo 4
// bug 4: data-race|tcgen05-misuse|missing-wait dealloc without a barrier behind the drain
// bug 5: tcgen05-misuse a second alloc behind relinquish
// bug 6: missing-wait the drain waits for the other accumulator's barrier
// bug 7: tcgen05-misuse the columns are not freed
// bug 8: data-race|uninitialized-read the address is read without a barrier
// bug 9: clean relinquish at the end
// bug 10: tcgen05-misuse dealloc by the drain warp with half of the columns
#include "../blackwell.cuh"
extern "C" __global__ void __launch_bounds__(160) kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 A[2048], B[1024];
    __shared__ alignas(8) u64 full[2], empty[2];
    __shared__ u32 base;
    const u32 t = threadIdx.x, warp = t / 32;
    fill(A, x, 128), fill(B, y, 64);
    if (t == 0) {
        for (int i = 0; i < 2; i++) init(full[i], 1), init(empty[i], 128);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (warp == 4) {
        alloc(base, 128);
#if BUG != 9
        relinquish();
#endif
#if BUG == 5
        alloc(base, 32);
#endif
    }
    fence_async_shared();
    fence_before_sync();
#if BUG == 8
    const u32 d = *(volatile u32*)&base;
    __syncthreads();
    fence_after_sync();
#else
    __syncthreads();
    fence_after_sync();
    const u32 d = base;
#endif
    if (warp == 4) {
        if (t == 128) {
#pragma unroll 1
            for (u32 k = 0; k < 3; k++) {
                const u32 s = k & 1;
#if BUG != 2
                wait(empty[s], (k / 2 & 1) ^ 1);
#endif
                fence_after_sync();
                multiply(d + s * 64, A, B, 0);
                commit_to(full[s]);
            }
        }
        __syncwarp();
    } else {
#pragma unroll 1
        for (u32 k = 0; k < 3; k++) {
            const u32 s = k & 1;
            wait(full[BUG == 6 ? 0 : s], k / 2 & 1);
            fence_after_sync();
            float v[8];
            for (u32 column = 0; column < 64; column += 8) {
                load(v, (BUG == 3 ? d + ((warp + 1) % 4 * 32 << 16) : own_lanes(d)) + s * 64 + column);
#if BUG == 1
                if (k == 2)
#endif
                wait_loads();
#if BUG == 1
                if (k == 2)
#endif
                for (u32 i = 0; i < 8; i++) out[(k * 128 + t) * 64 + column + i] = v[i];
            }
            fence_before_sync();
            arrive(empty[s]);
        }
    }
    fence_before_sync();
#if BUG != 4
    __syncthreads();
#endif
    fence_after_sync();
    if (warp == 4) {
#if BUG == 9
        relinquish();
#endif
        if (BUG != 7) dealloc(d, BUG == 10 ? 64 : 128);
    }
}
