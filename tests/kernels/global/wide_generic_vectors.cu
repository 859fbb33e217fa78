// Stores of 32 bytes with a generic address (256 bits, sm_100): both CTAs store into the share of the first.
//
// launch: grid=2 block=32 arch=sm_100a
// arg: given u32[512]=arange
// arg: out u32[512]=zeros
// expect: global-race WAW @store @store severity=error
// result: out = given
#ifdef RACY
#define SHARE threadIdx.x
#else
#define SHARE thread
#endif
#define STORE "st.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};"
extern "C" __global__ void kernel(const unsigned* given, unsigned* out) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned a, b, c, d, e, f, g, h;
    asm volatile("ld.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d), "=r"(e), "=r"(f), "=r"(g), "=r"(h) : "l"(given + thread * 8));
    asm volatile(STORE :: "l"(out + SHARE * 8), "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g), "r"(h) : "memory");  /*@store*/
}
