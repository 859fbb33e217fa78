// G4: what CTA 0 has released is handed on by read-modify-writes of the flag, not by a store.
//
// launch: grid=3 block=32
// arg:    data f32[1]=zeros
// arg:    flag u32[2]=zeros
// arg:    out f32[1]=zeros
// expect: global-race @store @load severity=error
// result: out = np.float32([7])
__device__ unsigned poll(unsigned* flag) {
    unsigned seen;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *data = 7;  /*@store*/
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else if (blockIdx.x == 1) {
        while (poll(flag) != 1) {}
#ifdef RACY
        asm volatile("st.relaxed.gpu.global.u32 [%0], 2;" ::"l"(flag) : "memory");
#else
        atomicAdd(flag, 1);
#endif
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag + 1) : "memory");
    } else {
        while (!poll(flag + 1)) {}
        while (poll(flag) != 2) {}
        __threadfence();
        *out = *data;  /*@load*/
    }
}
