// Each lane of a warp counts itself in, and each lane of another one polls the count. The readers have a fence, the writers have none:
// of the lanes that poll, others may not have come to their fences yet.
// launch: grid=1 block=64
// arg: x u32[64]=arange
// arg: out u32[32]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[:32]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const u32* x, u32* out) {
    __shared__ u32 box[32], count;
    u32 t = threadIdx.x;
    if (t == 0) count = 0;
    __syncthreads();
    if (t < 32) {
        box[t] = x[t];  /*@write*/
#ifndef RACY
        FENCE();
#endif
        asm volatile("red.relaxed.cta.shared.add.u32 [%0], 1;" ::"r"(shared(&count)) : "memory");
    } else {
        u32 seen;
        do asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(shared(&count)) : "memory");
        while (seen < 32);
        FENCE();
        out[t - 32] = box[t - 32];  /*@read*/
    }
}
