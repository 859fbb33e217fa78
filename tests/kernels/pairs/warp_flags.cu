// Each warp of a producer CTA hands its row to the same warp of a consumer CTA: a flag a warp, no barrier of the CTA.
// launch: grid=2 block=128
// arg: x f32[4,32]=random
// arg: row f32[4,32]=zeros
// arg: flag u32[4]=zeros
// arg: out f32[4,32]=zeros
// result: out = 2 * x
// bug 1: global-race warn no __syncwarp before the flag: other lanes' stores
// bug 2: global-race warn no __syncwarp behind the poll
// bug 3: global-race flag of another warp
// bug 5: clean one counter for all warps, waits for four
// bug 6: global-race relaxed flag
// bug 7: clean every lane fences, then __syncwarp, then lane 0 sets the flag; all poll
// bug 8: clean __shfl_sync of the flag, then __syncwarp
// bug 9: global-race warn __shfl_sync of the flag alone
__device__ void set(unsigned* p, unsigned v) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
__device__ unsigned get(unsigned* p) { unsigned v; asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
extern "C" __global__ void kernel(const float* __restrict__ x, float* row, unsigned* flag, float* out) {
    int w = threadIdx.x / 32, lane = threadIdx.x % 32, i = threadIdx.x;
    if (blockIdx.x == 0) {
        row[i] = 2 * x[i];
#if BUG == 7
        __threadfence();
#endif
#if BUG != 1
        __syncwarp();
#endif
        if (lane == 0) {
#if BUG == 5
            __threadfence();
            atomicAdd(flag, 1u);
#elif BUG == 6 || BUG == 7
            *(volatile unsigned*)(flag + w) = 1;
#else
            set(flag + w, 1);
#endif
        }
        return;
    }
#if BUG == 3
    unsigned* mine = flag + (w + 1) % 4;
#else
    unsigned* mine = flag + w;
#endif
#if BUG == 7
    while (*(volatile unsigned*)mine == 0) {}
    __threadfence();
#elif BUG == 8 || BUG == 9
    unsigned seen = 0;
    do { if (lane == 0) seen = get(mine); seen = __shfl_sync(~0u, seen, 0); } while (seen == 0);
#else
    if (lane == 0) {
#if BUG == 5
        while (get(flag) < 4) {}
#else
        while (get(mine) == 0) {}
#endif
    }
#endif
#if BUG != 2 && BUG != 9
    __syncwarp();
#endif
    out[i] = row[i];
}
