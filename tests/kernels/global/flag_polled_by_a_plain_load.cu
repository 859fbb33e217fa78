// R-GM1: the flag is stored by an atomic, and polled with .cg: a hint, so the load is weak.
//
// launch: grid=2 block=32
// arg:    data u32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out u32[1]=zeros
// expect: global-race @flag @poll severity=error
// expect: global-race @store @load severity=error
// result: out = np.uint32([42])
extern "C" __global__ void kernel(unsigned* data, unsigned* flag, unsigned* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        data[0] = 42;  /*@store*/
        __threadfence();
        atomicExch(flag, 1);  /*@flag*/
    } else {
        unsigned seen = 0;
        while (!seen)
#ifdef RACY
            asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");  /*@poll*/
#else
            seen = *(volatile unsigned*)flag;
#endif
        __threadfence();
        out[0] = data[0];  /*@load*/
    }
}
