// G1: a reader of a sequence lock. Nothing lets the loads of the data come after its first look, so they may give an old round.
//
// launch: grid=2 block=32
// arg:    lock u32[1]=zeros
// arg:    data u32[2]=zeros
// arg:    out u32[2]=zeros
// expect: missing-order @store @load severity=warning
// allow:  missing-order @other @load severity=warning
// result: data = np.full(2, 9)
__device__ __forceinline__ unsigned acquire(const unsigned* p) {
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ void release(unsigned* p, unsigned v) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
extern "C" __global__ void kernel(unsigned* lock, volatile unsigned* data, unsigned* out) {
    if (threadIdx.x) return;
    volatile unsigned* sequence = lock;
    if (blockIdx.x == 0) {
        for (unsigned round = 1; round < 10; round++) {
            *sequence = 2 * round - 1;
            __threadfence();
            data[0] = round;  /*@store*/
            data[1] = round;  /*@other*/
            release(lock, 2 * round);
            for (int look = 0; look < 20; look++) (void)*sequence;  // a reader finds the sequence at rest
            __nanosleep(20000);
        }
    } else {
        unsigned before, one, other;
        while (*sequence < 2) {}
        do {
#ifdef RACY
            before = *sequence;
#else
            before = acquire(lock);
#endif
            one = data[0], other = data[1];  /*@load*/
            __threadfence();
        } while ((before & 1) || *sequence != before);
        out[0] = one, out[1] = other;
    }
}
