// G1: a flag that is set as a byte and polled as a word: not the same bytes, so not morally strong.
//
// launch: grid=2 block=32
// arg:    data f32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: global-race @store @load severity=error
// expect: global-race @set @poll severity=error
// result: out = np.float32([7])
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *data = 7;  /*@store*/
        __threadfence();
#ifdef RACY
        asm volatile("st.relaxed.gpu.global.u8 [%0], 1;" ::"l"(flag) : "memory");  /*@set*/
#else
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
#endif
    } else {
        unsigned seen = 0;
        while (!seen) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");  /*@poll*/
        __threadfence();
        *out = *data;  /*@load*/
    }
}
