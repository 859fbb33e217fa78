// G2 within a CTA: one warp hands a value to another through a flag, polled with acquire. A fence before the flag makes its store a release.
//
// launch: grid=2 block=64
// arg:    data f32[2]=zeros
// arg:    flag u32[2]=zeros
// arg:    out f32[2]=zeros
// expect: data-race RAW @store @load severity=error
// result: out = np.float32([7, 7])
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    data += blockIdx.x, flag += blockIdx.x;
    if (threadIdx.x == 0) {
        *data = 7;  /*@store*/
#ifndef RACY
        asm volatile("fence.acq_rel.cta;" ::: "memory");
#endif
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else if (threadIdx.x == 32) {
        unsigned seen;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (!seen);
        out[blockIdx.x] = *data;  /*@load*/
    }
}
