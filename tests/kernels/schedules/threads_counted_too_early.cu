// Each thread of a CTA stores a word and adds one to a count in global memory; another CTA waits for 63 adds in place of 64.
// launch:   grid=2 block=64 arch=sm_80
// arg:      x u32[64]=arange
// arg:      box u32[64]=zeros
// arg:      count u32[1]=zeros
// arg:      out u32[64]=zeros
// expect:   global-race severity=error
// result:   out = x
// backends: cpu
#ifdef RACY
#define COUNT 63
#else
#define COUNT 64
#endif
extern "C" __global__ void kernel(const unsigned* x, unsigned* box, unsigned* count, unsigned* out) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        box[t] = x[t];
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
    } else {
        unsigned seen;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
        while (seen < COUNT);
        out[t] = box[t];
    }
}
