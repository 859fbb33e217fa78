// G6: the fence.sc of CTA 0 is before what CTA 2 writes, because CTAs 1 and 2 have acquired what it has released. CTA 2 releases nothing, but
// CTA 3 has seen its write before a fence.sc of its own.
//
// launch: grid=4 block=32
// arg:    data f32[1]=zeros
// arg:    flags u32[3]=zeros
// arg:    out f32[1]=zeros
// result: out = np.float32([7])
__device__ unsigned acquire(const unsigned* flag) {
    unsigned seen;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}
extern "C" __global__ void kernel(float* data, unsigned* flags, float* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *data = 7;
        __threadfence();
        *(volatile unsigned*)flags = 1;
    } else if (blockIdx.x == 1) {
        while (!acquire(flags)) {}
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flags + 1) : "memory");
    } else if (blockIdx.x == 2) {
        while (!acquire(flags + 1)) {}
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flags + 2) : "memory");
    } else {
        while (!((volatile unsigned*)flags)[2]) {}
        __threadfence();
        *out = *data;
    }
}
