// A cp.async main loop whose ring becomes the staging buffer of the epilogue; bias by a last cp.async; results through 16-byte loads.
// launch: grid=2 block=64 arch=sm_80
// arg: x f32[2,6,256]=random
// arg: bias f32[256]=random
// arg: out f32[2,256]=zeros
// bug 1: missing-wait wait_group 1 before the bias is read
// bug 2: missing-wait|data-race the staging overwrites a stage whose copy is in flight: no wait_group 0
// bug 3: data-race no barrier between the last reads and the staging
// bug 4: data-race no barrier between the staging and the results
// bug 5: missing-wait the bias is committed with the last stage's group, and wait_group counts one more
// bug 6: clean wait_all, barrier
// bug 7: missing-wait the bias is copied by warp 1, and warp 0 reads it without a barrier behind its wait
// bug 8: clean each thread reads the bias that it has copied, without a barrier
#include "../hopper.cuh"
template <int N> INLINE void pending() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
INLINE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
extern "C" __global__ void __launch_bounds__(64) kernel(const float* x, const float* bias, float* out) {
    __shared__ alignas(16) float ring[2][256];
    __shared__ alignas(16) float last[256];
    const u32 t = threadIdx.x;
    const float* mine = x + blockIdx.x * 1536;
    float sum[4] = {0, 0, 0, 0};
    copy16(&ring[0][t * 4], mine + t * 4);
    commit();
#pragma unroll 1
    for (u32 k = 0; k < 6; k++) {
        if (k < 5) copy16(&ring[(k + 1) & 1][t * 4], mine + (k + 1) * 256 + t * 4);
        if (k == 5) {
#if BUG == 7
            if (t >= 32) copy16(&last[(t - 32) * 8], bias + (t - 32) * 8), copy16(&last[(t - 32) * 8 + 4], bias + (t - 32) * 8 + 4);
#else
            copy16(&last[t * 4], bias + t * 4);
#endif
        }
        commit();
#if BUG == 2
        if (k < 5) pending<1>();
#elif BUG == 5
        pending<1>();
#else
        pending<1>();
#endif
        __syncthreads();
        for (u32 i = 0; i < 4; i++) sum[i] += ring[k & 1][(t * 4 + i + 4) & 255];
        __syncthreads();
#if BUG == 3
        if (k == 5) ring[1][t * 4] = sum[0];
#endif
    }
#if BUG == 3
    for (u32 i = 0; i < 4; i++) sum[i] += ring[1][(t * 4 + 8 + i) & 255] * 0;
#endif
#if BUG == 1 || BUG == 5
    pending<1>();
#elif BUG == 6
    copy_wait();
#else
    pending<0>();
#endif
#if BUG != 7 && BUG != 8
    __syncthreads();
#endif
    for (u32 i = 0; i < 4; i++) {
        const u32 at = BUG == 8 ? t * 4 + i : (t * 4 + i + 4) & 255;
        ring[0][t * 4 + i] = sum[i] + last[at];
    }
#if BUG != 4
    __syncthreads();
#endif
    for (u32 i = t; i < 256; i += 64) out[blockIdx.x * 256 + i] = ring[0][i];
}
