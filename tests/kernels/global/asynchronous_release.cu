// st.async.release and red.async.release (sm_100): a producer publishes by an asynchronous store, and counts by a sum. The data that the
// consumer reads is stored behind them.
//
// launch: grid=2 block=32 arch=sm_100a
// arg:    data u32[1]=zeros
// arg:    flags u32[2]=zeros
// arg:    out u32[1]=zeros
// expect: global-race @store @load severity=error
// result: out = np.uint32([7])
extern "C" __global__ void kernel(unsigned* data, unsigned* flags, unsigned* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
#ifndef RACY
        *data = 7;
#endif
        asm volatile("red.async.release.gpu.global.add.u32 [%0], %1;" ::"l"(flags + 1), "r"(1) : "memory");
        asm volatile("st.async.release.gpu.global.u32 [%0], %1;" ::"l"(flags), "r"(1) : "memory");
#ifdef RACY
        *data = 7;  /*@store*/
#endif
    } else {
        unsigned flag, count;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(flags) : "memory");  /*@poll*/
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(flags + 1) : "memory");
        } while (flag + count < 2);
        *out = *data;  /*@load*/
    }
}
