// A histogram by atomics of several CTAs, and relaxed loads beside them.
//
// launch: grid=4 block=64
// arg:    bins u32[8]=zeros
// result: bins = np.full(8, 32, np.uint32)
extern "C" __global__ void kernel(unsigned* bins) {
    atomicAdd(&bins[threadIdx.x % 8], 1);
    unsigned seen;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&bins[0]) : "memory");
    if (seen > 1000) bins[0] = 0;
}
