// Waits with the token of an arrival (cuda::barrier's form), a split arrive and wait, arrive_drop, and relaxed waits with fences.
// launch: grid=1 block=128 arch=sm_90
// arg: x f32[4,128]=random
// arg: out f32[128]=zeros
// bug 1: data-race the wait is missing in the odd rounds
// bug 2: barrier-misuse|data-race|deadlock the token of the first round is used in all
// bug 3: data-race the read is between arrive and wait
// bug 4: clean work on own data between arrive and wait
// bug 5: clean warp 3 drops out behind the second round
// bug 6: deadlock warp 3 leaves without a drop
// bug 7: data-race|missing-wait warn relaxed waits without a fence
// bug 8: clean relaxed waits, fence.acq_rel.cta behind them
// bug 9: data-race|missing-wait relaxed arrivals without a fence
// bug 10: clean noComplete arrivals of half a count, and the rest
#include "../hopper.cuh"
INLINE u64 arrive_token(u64& b) {
    u64 token;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(shared(&b)) : "memory");
    return token;
}
INLINE u64 arrive_relaxed(u64& b) {
    u64 token;
    asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(shared(&b)) : "memory");
    return token;
}
INLINE void drop(u64& b) { asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" ::"r"(shared(&b)) : "memory"); }
INLINE void wait_token(u64& b, u64 token) {
    asm volatile("{.reg .pred p;\nL: mbarrier.try_wait.shared::cta.b64 p, [%0], %1;\n@!p bra L;}" ::"r"(shared(&b)), "l"(token) : "memory");
}
INLINE void wait_relaxed(u64& b, u64 token) {
    asm volatile("{.reg .pred p;\nL: mbarrier.try_wait.relaxed.cta.shared::cta.b64 p, [%0], %1;\n@!p bra L;}" ::"r"(shared(&b)), "l"(token) : "memory");
}
extern "C" __global__ void __launch_bounds__(128) kernel(const float* x, float* out) {
    __shared__ float tile[2][128];
    __shared__ alignas(8) u64 bar;
    const u32 t = threadIdx.x;
    if (t == 0) init(bar, BUG == 10 ? 256 : 128);
    __syncthreads();
    float sum = 0;
    u64 first = 0;
#pragma unroll 1
    for (u32 k = 0; k < 4; k++) {
        tile[k & 1][t] = x[k * 128 + t];
#if BUG == 5
        if (k == 1 && t >= 96) {
            drop(bar);
            break;
        }
#elif BUG == 6
        if (k == 2 && t >= 96) break;
#endif
#if BUG == 10
        asm volatile("{.reg .b64 s; mbarrier.arrive.noComplete.release.cta.shared::cta.b64 s, [%0], 1;}" ::"r"(shared(&bar)) : "memory");
#endif
        const u64 token = BUG == 9 ? arrive_relaxed(bar) : arrive_token(bar);
        if (k == 0) first = token;
        float other = 0;
#if BUG == 3
        other = tile[k & 1][t ^ 32];
#elif BUG == 4
        other = tile[k & 1][t] * 0;
#endif
#if BUG == 1
        if (k % 2 == 0) wait_token(bar, token);
#elif BUG == 2
        wait_token(bar, first);
#elif BUG == 7
        wait_relaxed(bar, token);
#elif BUG == 8
        wait_relaxed(bar, token);
        asm volatile("fence.acq_rel.cta;" ::: "memory");
#else
        wait_token(bar, token);
#endif
        sum += other + (BUG == 3 ? 0 : tile[k & 1][BUG == 5 || BUG == 6 ? t : t ^ 32]);
    }
    out[t] = sum + (float)(first & 0);
}
