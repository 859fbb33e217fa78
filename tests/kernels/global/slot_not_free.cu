// R-GM3: a ring of two slots between CTAs. The producer does not wait until the consumer has read a slot before it fills it again. It does
// wait, once, until the consumer knows of the first slot and no other: so the race is there in each schedule.
//
// launch: grid=2 block=32
// arg:    slots u32[64]=zeros
// arg:    counts u32[3]=zeros
// arg:    out u32[128]=zeros
// expect: global-race @store @load severity=error
// result: out = np.repeat(np.arange(4, dtype=np.uint32), 32)
__device__ unsigned acquire(const unsigned* flag) {
    unsigned seen;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}
__device__ void release(unsigned* flag, unsigned value) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory"); }
extern "C" __global__ void kernel(unsigned* slots, unsigned* counts, unsigned* out) {
    unsigned thread = threadIdx.x;
#pragma unroll 1
    for (unsigned i = 0; i < 4; i++) {
        if (blockIdx.x == 0) {
#ifndef RACY
            if (thread == 0 && i >= 2)
                while (acquire(counts + 1) < i - 1) {}
            __syncthreads();
#endif
            slots[i % 2 * 32 + thread] = i;  /*@store*/
            __syncthreads();
            if (thread == 0) release(counts, i + 1);
            if (thread == 0 && i == 0)
                while (!((volatile unsigned*)counts)[2]) {}
        } else {
            if (thread == 0)
                while (acquire(counts) < i + 1) {}
            if (thread == 0) ((volatile unsigned*)counts)[2] = 1;
            __syncthreads();
            out[i * 32 + thread] = slots[i % 2 * 32 + thread];  /*@load*/
            __syncthreads();
            if (thread == 0) release(counts + 1, i + 1);
        }
    }
}
