// Epilogue as CUTLASS writes it: stmatrix into two staging buffers in turn, fence, named barrier, TMA store by one thread.
// launch: grid=2 block=128 arch=sm_90a
// arg: x f32[8,1024]=random
// arg: y tma:f16[512,16]=zeros,box=64x16
// bug 1: missing-wait staging is rewritten: wait_group.read 2 in place of 1
// bug 2: data-race|missing-wait the wait is behind the barrier
// bug 3: missing-proxy-fence no fence
// bug 4: missing-proxy-fence the fence is behind the barrier, by a thread that does not issue
// bug 5: data-race|missing-proxy-fence|missing-wait no barrier before the store
// bug 6: missing-wait no commit in the loop: one commit at the end
// bug 7: lifetime no wait at all before the exit
// bug 8: clean wait_group.read at the exit
// bug 9: missing-proxy-fence __threadfence_block in place of the proxy fence
// bug 10: missing-proxy-fence fence.proxy.async.global in place of shared
// bug 11: barrier-misuse|deadlock|data-race|missing-wait bar.sync 1, 96
// bug 12: data-race|missing-proxy-fence bar.arrive in place of bar.sync by the issuer's warp
// bug 13: clean fence.proxy.async without a suffix
// bug 14: missing-wait the commit is executed by another thread of the warp
#include "../hopper.cuh"
INLINE void stmatrix4(void* to, u32 a, u32 b, u32 c, u32 d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared(to)), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
INLINE u32 pack(float a, float b) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(a), "f"(b));
    return r;
}
extern "C" __global__ void __launch_bounds__(128) kernel(const float* x, const __grid_constant__ TensorMap y) {
    __shared__ alignas(128) f16 stage[2][64 * 16];
    const u32 t = threadIdx.x, warp = t / 32, lane = t % 32;
#pragma unroll 1
    for (u32 n = 0; n < 4; n++) {
        const u32 tile = blockIdx.x * 4 + n;
        // The buffer of the round before the last is free when its store has read it.
#if BUG == 1
        if (t == 0) bulk_wait_read<2>();
#elif BUG != 2 && BUG != 7
        if (t == 0) bulk_wait_read<1>();
#endif
        asm volatile("bar.sync 1, 128;" ::: "memory");
#if BUG == 2
        if (t == 0) bulk_wait_read<1>();
#endif
        f16* out = stage[n & 1];
        const float* in = x + tile * 1024 + warp * 256;
        u32 v[4];
        for (u32 i = 0; i < 4; i++) {
            u32 row = lane / 4 + i % 2 * 8, k = lane % 4 * 2 + i / 2 * 8;
            v[i] = pack(in[row * 16 + k], in[row * 16 + k + 1]);
        }
        // Rows of 32 bytes: matrices (rows 0-7, k 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15).
        u32 row = lane % 16, half = lane / 16;
        stmatrix4(out + (warp * 16 + row) * 16 + half * 8, v[0], v[1], v[2], v[3]);
#if BUG == 9
        __threadfence_block();
#elif BUG == 10
        fence_async_global();
#elif BUG == 13
        fence_async();
#elif BUG != 3 && BUG != 4
        fence_async_shared();
#endif
#if BUG == 11
        asm volatile("bar.sync 2, 96;" ::: "memory");
#elif BUG == 12
        if (warp == 0) asm volatile("bar.arrive 2, 128;" ::: "memory");
        else asm volatile("bar.sync 2, 128;" ::: "memory");
#elif BUG != 5
        asm volatile("bar.sync 2, 128;" ::: "memory");
#endif
#if BUG == 4
        if (t != 0) fence_async_shared();
#endif
        if (t == 0) {
            tensor_store(y, 0, tile * 64, out);
#if BUG != 6 && BUG != 14
            bulk_commit();
#endif
        }
#if BUG == 14
        if (t == 1) bulk_commit();
#endif
    }
#if BUG == 6
    if (t == 0) bulk_commit();
#endif
#if BUG == 8
    if (t == 0) bulk_wait_read<0>();
#elif BUG != 7
    if (t == 0) bulk_wait<0>();
#endif
}
