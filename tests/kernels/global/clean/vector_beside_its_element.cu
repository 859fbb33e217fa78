// G10: a strong vector is as many strong scalar accesses, so a relaxed load of one element beside it is morally strong.
//
// launch: grid=2 block=32
// arg:    pair u32[2]=zeros
// result: pair = np.uint32([1, 2])
extern "C" __global__ void kernel(unsigned* pair) {
    if (threadIdx.x) return;
    unsigned seen;
    if (blockIdx.x == 0) asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {1, 2};" ::"l"(pair) : "memory");
    else asm volatile("ld.relaxed.gpu.global.u32 %0, [%1+4];" : "=r"(seen) : "l"(pair) : "memory");
}
