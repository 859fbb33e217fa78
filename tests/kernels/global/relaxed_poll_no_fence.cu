// G2: message passing with relaxed accesses and fence.acq_rel; the reader's fence is what makes its poll an acquire.
//
// launch: grid=2 block=32
// arg:    data f32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: global-race RAW @store @load severity=error
// result: out = np.float32([7])
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *data = 7;  /*@store*/
        asm volatile("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        unsigned seen = 0;
        while (!seen) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
#ifndef RACY
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
        *out = *data;  /*@load*/
    }
}
