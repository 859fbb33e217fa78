// G3: the flag has .cta scope, and no fence comes before it. A wider flag alone would order nothing, so the data is no `scope`.
//
// launch: grid=2 block=1
// arg:    data u32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out u32[1]=zeros
// expect: global-race RAW @store @load severity=error
// expect: scope RAW @set @poll severity=error
// result: out = np.full(1, 7, dtype=np.uint32)
#ifdef RACY
#define SET "st.relaxed.cta.u32 [%0], 1;"
#else
#define SET "st.release.gpu.u32 [%0], 1;"
#endif
extern "C" __global__ void kernel(unsigned* data, unsigned* flag, unsigned* out) {
    if (blockIdx.x == 0) {
        *data = 7;  /*@store*/
        asm volatile(SET ::"l"(flag) : "memory");  /*@set*/
    } else {
        unsigned seen = 0;
        while (!seen) asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");  /*@poll*/
        *out = *data;  /*@load*/
    }
}
