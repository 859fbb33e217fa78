// Every thread of a block stores and executes a fence, a barrier comes, and one thread sets a flag. The release pattern of 8.8 is one
// thread's: its fence covers what the barrier has brought it. A fence before the barrier covers its own thread only, and the flag is another
// thread's. Fences of all threads on both sides order the two by Fence-SC order alone (R-GM6), so they must be fence.sc. Here those of the
// racy kernel are fence.acq_rel, which all known chips treat alike (D17).
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
        asm volatile(FENCE ::: "memory");
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
