// Mainloop and epilogue share one buffer (a union), ldmatrix double buffering from cp.async stages.
// launch: grid=1 block=64 arch=sm_80 smem=4096
// arg: a f16[4,512]=random
// arg: out f32[512]=zeros
// bug 1: clean no barrier between mainloop and epilogue: the last round has one behind the last read
// bug 2: missing-wait copies of the last prefetch land in the epilogue
// bug 3: data-race no barrier between the writes of the epilogue and its reads
// bug 4: out-of-bounds the epilogue needs more than the launch has
// bug 5: data-race|missing-wait fragments of the next step are read before the barrier
// bug 6: clean barrier and wait_group 0 in the other order, both there
#include "../hopper.cuh"
template <int N> INLINE void pending() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
INLINE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
INLINE void ldmatrix4(u32 (&r)[4], const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared(p)) : "memory");
}
extern "C" __global__ void __launch_bounds__(64) kernel(const f16* a, float* out) {
    extern __shared__ __align__(128) unsigned char raw[];
    union Storage {
        f16 mainloop[2][1024];
        float epilogue[1024];
    };
    Storage& smem = *reinterpret_cast<Storage*>(raw);
    const u32 t = threadIdx.x, warp = t / 32, lane = t % 32;
    auto load = [&](u32 k) {
        if (k < 4 || BUG == 2) copy16(&smem.mainloop[k % 2][t * 8], a + k % 4 * 512 + t * 8);
        commit();
    };
    load(0);
    float sum[4] = {};
    u32 fragment[2][4];
    pending<0>();
    __syncthreads();
    ldmatrix4(fragment[0], &smem.mainloop[0][lane * 16]);
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
        load(k + 1);
        for (u32 i = 0; i < 4; i++) sum[i] += (float)(fragment[k % 2][i] & 0xffff);
#if BUG == 5
        pending<0>();
        ldmatrix4(fragment[(k + 1) % 2], &smem.mainloop[(k + 1) % 2][lane * 16]);
        __syncthreads();
#else
#if BUG == 2
        if (k < 3)
#endif
        pending<0>();
        __syncthreads();
        if (k < 3) ldmatrix4(fragment[(k + 1) % 2], &smem.mainloop[(k + 1) % 2][lane * 16]);
#endif
    }
#if BUG != 1
    __syncthreads();
#endif
    const u32 off = BUG == 4 ? 1024 : 0;
    for (u32 i = 0; i < 4; i++) smem.epilogue[off + warp * 128 + i * 32 + lane] = sum[i];
#if BUG != 3
    __syncthreads();
#endif
    for (u32 i = 0; i < 4; i++) out[i * 64 + t] = smem.epilogue[off + 255 - i * 64 - t];
}
