// R-MO1, both sides: neither does the writer publish the data before the flag, nor the reader acquire them after it. One fence alone mends nothing.
//
// launch: grid=2 block=1
// arg:    data u32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out u32[1]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.uint32([43])
#ifdef RACY
#define FENCE()
#else
#define FENCE() asm volatile("fence.acq_rel.gpu;" ::: "memory")
#endif
extern "C" __global__ void kernel(unsigned* data, unsigned* flag, unsigned* out) {
    if (blockIdx.x == 0) {
        asm volatile("st.relaxed.gpu.global.u32 [%0], 42;" ::"l"(data) : "memory");  /*@store*/
        FENCE();
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        unsigned seen, value;
        do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (!seen);
        FENCE();
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(data) : "memory");  /*@load*/
        *out = value + 1;
    }
}
