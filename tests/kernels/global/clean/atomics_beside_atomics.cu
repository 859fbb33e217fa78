// A histogram by reductions of several CTAs, which observe nothing, and relaxed loads beside them. Relaxed stores to one word.
//
// launch: grid=4 block=64
// arg:    bins u32[8]=zeros
// arg:    winner u32[1]=zeros
// result: bins = np.full(8, 32, np.uint32)
extern "C" __global__ void kernel(unsigned* bins, unsigned* winner) {
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(&bins[threadIdx.x % 8]) : "memory");
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(winner), "r"(blockIdx.x) : "memory");
    unsigned seen;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&bins[0]) : "memory");
    if (seen > 1000) bins[0] = 0;
}
