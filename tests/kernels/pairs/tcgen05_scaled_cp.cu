// sm_100a: extra columns by tcgen05.cp from a TMA stage, the stage refilled behind the commit; A by TMA; loads of both by all warps.
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[2,2048]=random
// arg: y f16[1024]=random
// arg: out f32[2,128,8]=zeros
// bug 1: missing-wait the stage is refilled before the commit has come
// bug 2: missing-wait the copied columns are read without a wait
// bug 3: missing-proxy-fence|data-race B without a fence
// bug 4: missing-wait the commit is in front of tcgen05.cp
// bug 5: missing-wait commit by another lane
// bug 6: clean two commits, the later one waited for
// bug 7: data-race|missing-wait the next cp overwrites columns that warps still load
// bug 8: missing-wait no wait for the TMA stage
#include "../blackwell.cuh"
extern "C" __global__ void __launch_bounds__(128) kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 A[2048], B[1024];
    __shared__ alignas(8) u64 full, done, early;
    __shared__ u32 base;
    const u32 t = threadIdx.x;
    fill(B, y, 64);
    if (t == 0) {
        init(full, 1), init(done, 1), init(early, 2);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (t < 32) alloc(base, 128);
#if BUG != 3
    fence_async_shared();
#endif
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    const u32 d = base;
    if (t == 0) expect(full, 4096), bulk_load(A, x, 4096, full);
#pragma unroll 1
    for (u32 k = 0; k < 2; k++) {
        if (t == 0) {
#if BUG != 8
            wait(full, k);
#endif
            multiply(d, A, B, k);
#if BUG == 4
            commit_to(done);
#endif
            copy_4_columns(d + 64, A), copy_4_columns(d + 68, A);
#if BUG == 6
            commit_to(early), commit_to(done);
#elif BUG != 4 && BUG != 5
            commit_to(done);
#endif
#if BUG == 1
            if (k == 0) expect(full, 4096), bulk_load(A, x + 2048, 4096, full);
#endif
        }
#if BUG == 5
        __syncwarp();
        if (t == 1) commit_to(done);
#endif
#if BUG == 2
        if (t < 32)
#endif
        wait(done, k);
        fence_after_sync();
#if BUG != 1
        if (t == 0 && k == 0) {
#if BUG == 2
            wait(done, 0);
#endif
            expect(full, 4096), bulk_load(A, x + 2048, 4096, full);
        }
#endif
        float v[8], w[8];
        load(v, own_lanes(d)), load(w, own_lanes(d) + 64);
        wait_loads();
        for (u32 i = 0; i < 8; i++) out[(k * 128 + t) * 8 + i] = v[i] + w[i];
        fence_before_sync();
#if BUG != 7
        __syncthreads();
#endif
        fence_after_sync();
    }
#if BUG == 7
    __syncthreads();
#endif
    if (t < 32) dealloc(d, 128);
}
