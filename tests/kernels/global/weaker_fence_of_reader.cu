// As weaker_fences_then_barrier, but only the reader's fences are weaker: those of all writers are fence.sc, and a fence.acq_rel behind the
// flag takes no part in Fence-SC order (R-GM6). All known chips treat the two alike (D17).
//
// launch: grid=2 block=64 arch=sm_90
// arg: data i32[64]=zeros
// arg: flag i32[1]=zeros
// arg: out i32[64]=zeros
// expect: global-race RAW @write @read severity=warning
// result: out = np.arange(64)
// policy: isa
#ifdef RACY
#define FENCE "fence.acq_rel.gpu;"
#else
#define FENCE "fence.sc.gpu;"
#endif

extern "C" __global__ void kernel(int* data, int* flag, int* out) {
    int seen;
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x; /*@write*/
        asm volatile("fence.sc.gpu;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) asm volatile("st.relaxed.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        if (threadIdx.x == 0) {
            do asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
            while (!seen);
        }
        __syncthreads();
        asm volatile(FENCE ::: "memory");
        out[threadIdx.x] = data[threadIdx.x]; /*@read*/
    }
}
