// R-GM10: a vector carries data and its flag, and one load polls both (NCCL's LL protocol). RACY: the flag alone is polled, then the data is loaded.
//
// launch: grid=2 block=32
// arg:    line u32[128]=zeros
// arg:    out u32[64]=zeros
// expect: global-race @store @load severity=error
// result: out = np.arange(64)
extern "C" __global__ void kernel(unsigned* line, unsigned* out) {
    unsigned t = threadIdx.x, *own = line + 4 * t;
    if (blockIdx.x == 0) {
        asm volatile("st.volatile.global.v4.u32 [%0], {%1, %3, %2, %3};" ::"l"(own), "r"(2 * t), "r"(2 * t + 1), "r"(1) : "memory");  /*@store*/
    } else {
        unsigned low = 0, high = 0, first = 0, second = 0;
#ifdef RACY
        while (!first || !second) {
            asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(first) : "l"(own + 1) : "memory");
            asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(second) : "l"(own + 3) : "memory");
        }
        low = own[0];  /*@load*/
        high = 2 * t + 1;
#else
        while (!first || !second)
            asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(low), "=r"(first), "=r"(high), "=r"(second) : "l"(own) : "memory");
#endif
        out[2 * t] = low, out[2 * t + 1] = high;
    }
}
