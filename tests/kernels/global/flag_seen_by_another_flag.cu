// G8: who has seen a strong store may go on with its word. Another flag of the same thread, also relaxed, says nothing about it.
//
// launch: grid=2 block=32
// arg:    ready u32[1]=zeros
// arg:    done u32[1]=zeros
// expect: global-race WAW @set @reset severity=error
// result: ready = np.uint32([0])
extern "C" __global__ void kernel(unsigned* ready, unsigned* done) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(ready) : "memory");  /*@set*/
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(done) : "memory");
    } else {
#ifdef RACY
        unsigned* polled = done;
#else
        unsigned* polled = ready;
#endif
        unsigned seen = 0;
        while (!seen) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(polled) : "memory");
        *ready = 0;  /*@reset*/
    }
}
