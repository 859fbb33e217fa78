// Each lane of a warp stores a word and adds one to a count; the other warp waits for one add in place of 32. The lanes add together in the first
// schedule. They are threads like others: the count may be one where most have stored nothing yet.
// launch:   grid=1 block=64 arch=sm_80
// arg:      x u32[64]=arange
// arg:      out u32[32]=zeros
// expect:   data-race severity=error
// result:   out = x[:32]
// backends: cpu
#include "../mbarrier.cuh"
#ifdef RACY
#define COUNT 1
#else
#define COUNT 32
#endif
extern "C" __global__ void kernel(const u32* x, u32* out) {
    __shared__ u32 box[32], count;
    u32 t = threadIdx.x;
    if (t == 0) count = 0;
    __syncthreads();
    if (t < 32) {
        box[t] = x[t];
        asm volatile("red.release.cta.shared.add.u32 [%0], 1;" ::"r"(shared(&count)) : "memory");
    } else {
        u32 seen;
        do asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(shared(&count)) : "memory");
        while (seen < COUNT);
        out[t - 32] = box[t - 32];
    }
}
