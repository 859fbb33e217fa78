// G2: two warps of a CTA, a flag and fences of .cta scope: all that they need.
//
// launch: grid=2 block=64
// arg:    data f32[2]=zeros
// arg:    flag u32[2]=zeros
// arg:    out f32[2]=zeros
// expect: data-race RAW @store @load severity=error
// result: out = np.float32([7, 7])
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    data += blockIdx.x, flag += blockIdx.x, out += blockIdx.x;
    if (threadIdx.x == 0) {
        *data = 7;  /*@store*/
        asm volatile("fence.acq_rel.cta; st.relaxed.cta.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else if (threadIdx.x == 32) {
        unsigned seen = 0;
        while (!seen) asm volatile("ld.relaxed.cta.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
#ifndef RACY
        asm volatile("fence.acq_rel.cta;" ::: "memory");
#endif
        *out = *data;  /*@load*/
    }
}
