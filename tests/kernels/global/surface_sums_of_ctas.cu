// R-SU1: reductions of several CTAs on a surface go with each other, and not with a store.
//
// launch: grid=4 block=32
// arg:    plane u64=3
// arg:    out u32[32]=zeros
// expect: global-race WAW @sum @store severity=error
// backends: cpu
// result: out = np.zeros(32)
extern "C" __global__ void kernel(unsigned long long plane, unsigned* out) {
    unsigned x = threadIdx.x;
    if (blockIdx.x < 3)
        asm volatile("sured.b.add.2d.u32.zero [%0, {%1, %2}], %3;" ::"l"(plane), "r"(4 * (x / 4)), "r"(1), "r"(1) : "memory");  /*@sum*/
#ifdef RACY
    else if (x == 0)
        asm volatile("sust.b.2d.b32.zero [%0, {%1, %2}], %3;" ::"l"(plane), "r"(16), "r"(1), "r"(5) : "memory");  /*@store*/
#endif
    if (x == 40) out[0] = 1;
}
