// R-GM10: two words that a vector stores are no word of eight bytes: these accesses are not of the same bytes. Fixed: both are vectors.
//
// launch: grid=2 block=32
// arg:    pair u32[2]=zeros
// arg:    out u32[2]=zeros
// expect: global-race @set @get severity=error
// result: out = np.uint32([1, 2])
extern "C" __global__ void kernel(unsigned* pair, unsigned* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        asm volatile("st.relaxed.gpu.global.v2.b32 [%0], {1, 2};" ::"l"(pair) : "memory");  /*@set*/
    } else {
        unsigned low = 0, high = 0;
#ifdef RACY
        unsigned long long both = 0;
        while (!both) asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(both) : "l"(pair) : "memory");  /*@get*/
        low = (unsigned)both, high = (unsigned)(both >> 32);
#else
        while (!low || !high) asm volatile("ld.relaxed.gpu.global.v2.b32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "l"(pair) : "memory");
#endif
        out[0] = low, out[1] = high;
    }
}
