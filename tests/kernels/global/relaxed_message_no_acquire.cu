// R-MO1, the acquire side: relaxed message passing. The data are relaxed as well, so there is no race, and the reader may still load the old value.
//
// launch: grid=2 block=1
// arg:    data u32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out u32[1]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.uint32([43])
extern "C" __global__ void kernel(unsigned* data, unsigned* flag, unsigned* out) {
    if (blockIdx.x == 0) {
        asm volatile("st.relaxed.gpu.global.u32 [%0], 42;" ::"l"(data) : "memory");  /*@store*/
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        unsigned seen, value;
        do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (!seen);
#ifndef RACY
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(data) : "memory");  /*@load*/
        *out = value + 1;
    }
}
