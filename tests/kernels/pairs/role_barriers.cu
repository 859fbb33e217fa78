// Three roles on named barriers as FlashAttention-3's schedule has them: load, two math warpgroups that take turns, and a store warp.
// launch: grid=1 block=320 arch=sm_90
// arg: x f32[4,128]=random
// arg: out f32[4,128]=zeros
// bug 1: data-race the math groups do not take turns
// bug 2: data-race|deadlock|barrier-misuse both groups sync on one id for their turn
// bug 3: deadlock|barrier-misuse the store warp syncs with a count of 128
// bug 4: data-race the store warp releases before it has read
// bug 5: deadlock the first turn is not given
// bug 6: clean the first turn is given behind a fence that nothing needs
// bug 7: barrier-misuse|data-race|deadlock the empty barrier has the id of the full one
// bug 8: clean an arrival is left over: the last turn is handed on
#include "../hopper.cuh"
INLINE void bsync(u32 id, u32 n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
INLINE void barrive(u32 id, u32 n) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }
extern "C" __global__ void __launch_bounds__(320) kernel(const float* x, float* out) {
    __shared__ float state[128], staged[128];
    const u32 t = threadIdx.x, group = t / 128, FULL = 3, EMPTY = BUG == 7 ? 3 : 4;
    if (t < 128) state[t] = 0;
    __syncthreads();
    if (t < 256) {
        const u32 c = t & 127, TURN = 1;
#if BUG != 5
        if (BUG == 6) __threadfence_block();
        if (group == 1) barrive(TURN, 256);  // the turn of group 0
#endif
#pragma unroll 1
        for (u32 k = group; k < 4; k += 2) {
#if BUG != 1
            bsync(BUG == 2 ? TURN : TURN + group, 256);
#endif
            const float v = x[k * 128 + c] + state[127 - c];
            bsync(5 + group, 128);
            state[c] = v;
            if (k > 0) bsync(EMPTY, 192 - 32);
            staged[c] = v;
            barrive(FULL, 160);
#if BUG != 1
            if (k < 3 || BUG == 8) barrive(BUG == 2 ? TURN : TURN + (group ^ 1), 256);
#endif
        }
    } else if (t < 288) {
        const u32 lane = t - 256;
#pragma unroll 1
        for (u32 k = 0; k < 4; k++) {
            bsync(FULL, BUG == 3 ? 128 : 160);
#if BUG == 4
            if (k < 3) barrive(EMPTY, 160);
#endif
            for (u32 i = lane; i < 128; i += 32) out[k * 128 + i] = staged[i];
#if BUG != 4
            if (k < 3) barrive(EMPTY, 160);
#endif
        }
    }
}
