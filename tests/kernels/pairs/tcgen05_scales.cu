// sm_100a: operands written by the threads, tcgen05.cp of extra columns, tcgen05.st of the initial accumulator, A from tensor memory.
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[2048]=random
// arg: y f16[1024]=random
// arg: out f32[128,64]=zeros
// bug 1: missing-wait no wait::st before the product
// bug 2: data-race no barrier between the warps' st and the product
// bug 3: missing-proxy-fence no proxy fence for the operands
// bug 4: clean the later commit covers both
// bug 5: missing-wait|data-race the operands are overwritten before the wait
// bug 6: missing-wait ld right behind cp, commit not waited
// bug 7: missing-wait the load of cp's columns waits for the product's commit, issued before cp
// bug 8: clean one commit for both
// bug 9: data-race|missing-wait commit by another thread than that of the product
#include "../blackwell.cuh"
extern "C" __global__ void __launch_bounds__(128) kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 A[2048], B[1024];
    __shared__ alignas(8) u64 done, copied;
    __shared__ u32 base;
    const u32 t = threadIdx.x, warp = t / 32;
    fill(A, x, 128), fill(B, y, 64);
    if (t == 0) init(done, 1), init(copied, 1);
    if (warp == 0) alloc(base, 128);
#if BUG != 3
    fence_async_shared();
#endif
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    const u32 d = base;
    float v[8];
    for (u32 column = 0; column < 64; column += 8) {
        for (u32 i = 0; i < 8; i++) v[i] = i + column;
        store(own_lanes(d) + column, v);
    }
#if BUG != 1
    wait_stores();
#endif
    fence_before_sync();
#if BUG != 2
    __syncthreads();
#endif
    fence_after_sync();
    if (t == 0) {
        multiply(d, A, B, 1);
#if BUG == 7
        commit_to(done);
        copy_4_columns(d + 64, A), copy_4_columns(d + 68, A);
#elif BUG == 8
        copy_4_columns(d + 64, A), copy_4_columns(d + 68, A);
        commit_to(done);
#elif BUG == 9
        copy_4_columns(d + 64, A), copy_4_columns(d + 68, A);
#else
        commit_to(done);
        copy_4_columns(d + 64, A), copy_4_columns(d + 68, A);
#if BUG != 6
        commit_to(copied);
#endif
#endif
    }
#if BUG == 9
    __syncwarp();
    if (t == 1) commit_to(done), commit_to(copied);
#endif
#if BUG == 5
    if (t >= 64) B[t] = 0;
#endif
#if BUG != 4
    wait(done, 0);
#endif
#if BUG != 6 && BUG != 7 && BUG != 8
    wait(copied, 0);
#endif
    fence_after_sync();
    float w[8];
    load(w, own_lanes(d) + 64);
    wait_loads();
    for (u32 column = 0; column < 64; column += 8) {
        load(v, own_lanes(d) + column);
        wait_loads();
        put(out, column, v);
    }
    if (w[0] == 12345.0f) out[0] = w[0];
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    if (warp == 0) relinquish(), dealloc(d, 128);
}
