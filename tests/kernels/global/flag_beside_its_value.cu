// G10: value and flag in one 64-bit word are read together, so they need no order. RACY: the flag is a word of its own beside the value, and
// nothing orders the two.
//
// launch: grid=2 block=32
// arg:    box u64[32]=zeros
// arg:    out u32[32]=zeros
// expect: global-race @store @load severity=error
// result: out = np.arange(32, dtype=np.uint32)
extern "C" __global__ void kernel(unsigned long long* box, unsigned* out) {
    unsigned* value = (unsigned*)(box + threadIdx.x);
    if (blockIdx.x == 0) {
#ifdef RACY
        *value = threadIdx.x; /*@store*/
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(value + 1), "r"(1) : "memory");
#else
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(value), "l"(1ull << 32 | threadIdx.x) : "memory");
#endif
    } else {
#ifdef RACY
        unsigned flag = 0;
        while (!flag) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(value + 1) : "memory");
        out[threadIdx.x] = *value; /*@load*/
#else
        unsigned long long seen = 0;
        while (!(seen >> 32)) asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(value) : "memory");
        out[threadIdx.x] = (unsigned)seen;
#endif
    }
}
