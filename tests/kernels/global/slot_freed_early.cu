// R-GM3: a slot between CTAs. The consumer frees the slot before it has read it.
//
// launch: grid=2 block=32
// arg:    slot u32[32]=zeros
// arg:    counts u32[2]=zeros
// arg:    out u32[128]=zeros
// expect: global-race @store @load severity=error
// result: out = np.repeat(np.arange(4, dtype=np.uint32), 32)
__device__ unsigned acquire(const unsigned* flag) {
    unsigned seen;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}
__device__ void release(unsigned* flag, unsigned value) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory"); }
extern "C" __global__ void kernel(unsigned* slot, unsigned* counts, unsigned* out) {
    unsigned thread = threadIdx.x;
#pragma unroll 1
    for (unsigned i = 0; i < 4; i++) {
        if (blockIdx.x == 0) {
            if (thread == 0)
                while (acquire(counts + 1) < i) {}
            __syncthreads();
            slot[thread] = i;  /*@store*/
            __syncthreads();
            if (thread == 0) release(counts, i + 1);
        } else {
            if (thread == 0)
                while (acquire(counts) < i + 1) {}
            __syncthreads();
#ifdef RACY
            if (thread == 0) release(counts + 1, i + 1);
            __syncthreads();
#endif
            out[i * 32 + thread] = slot[thread];  /*@load*/
            __syncthreads();
#ifndef RACY
            if (thread == 0) release(counts + 1, i + 1);
#endif
        }
    }
}
