// G3: the fence after the flag has .cta scope.
//
// launch: grid=2 block=32
// arg:    data f32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: scope @store @load severity=error
// expect: scope @set @poll severity=error
// result: out = np.float32([7])
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *data = 7;  /*@store*/
        asm volatile("st.release.gpu.u32 [%0], 1;" ::"l"(flag) : "memory");  /*@set*/
    } else {
        unsigned seen = 0;
#ifdef RACY
        while (!seen) asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");  /*@poll*/
#else
        while (!seen) asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
#endif
        *out = *data;  /*@load*/
    }
}
