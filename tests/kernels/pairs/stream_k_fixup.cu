// Stream-K: 6 CTAs share 4 tiles of 6 iterations (4 iterations per CTA); who starts a tile finishes it, others leave partials.
// launch: grid=6 block=64
// arg: x f32[4,6,64]=random
// arg: work f32[6,64]=zeros
// arg: flags i32[6]=zeros
// arg: out f32[4,64]=zeros
// result: out = x.sum(1)
// bug 1: global-race no barrier before the flag
// bug 2: global-race relaxed store of the flag
// bug 3: global-race poll by plain volatile with no fence
// bug 4: global-race flag of the wrong CTA
// bug 5: global-race no barrier after the poll
// bug 6: global-race flag is set before the store
// bug 7: scope release at cta scope
constexpr int ITERS = 6, PER_CTA = 4, TILES = 4;
__device__ void signal(int* flag) {
#if BUG == 2
    asm volatile("st.relaxed.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
#elif BUG == 7
    asm volatile("st.release.cta.global.s32 [%0], 1;" ::"l"(flag) : "memory");
#else
    asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
#endif
}
__device__ void await(int* flag) {
    int state;
#if BUG == 3
    while (*(volatile int*)flag == 0) {}
#else
    do { asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(state) : "l"(flag) : "memory"); } while (state == 0);
#endif
}
extern "C" __global__ void kernel(const float* __restrict__ x, float* work, int* flags, float* out) {
    const int t = threadIdx.x, cta = blockIdx.x;
    int begin = cta * PER_CTA, end = begin + PER_CTA;
    while (begin < end) {
        int tile = begin / ITERS, first = begin % ITERS, stop = min(end, (tile + 1) * ITERS);
        float acc = 0.f;
        for (int i = begin; i < stop; i++) acc += x[i * 64 + t];
        bool starts = first == 0, ends = stop == (tile + 1) * ITERS;
        if (!starts) {
#if BUG == 6
            __syncthreads();
            if (t == 0) signal(&flags[cta]);
            work[cta * 64 + t] = acc;
#else
            work[cta * 64 + t] = acc;
#if BUG != 1
            __syncthreads();
#endif
            if (t == 0) signal(&flags[cta]);
#endif
        } else {
            if (!ends) {
                int covered = stop, other = cta + 1;
                while (covered < (tile + 1) * ITERS) {
#if BUG == 4
                    if (t == 0) await(&flags[other - (other > 1)]);
#else
                    if (t == 0) await(&flags[other]);
#endif
#if BUG != 5
                    __syncthreads();
#endif
                    acc += work[other * 64 + t];
                    covered = min((other + 1) * PER_CTA, (tile + 1) * ITERS), other++;
                }
            }
            out[tile * 64 + t] = acc;
        }
        begin = stop;
    }
}
