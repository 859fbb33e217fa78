// Each of two CTAs raises its flag and writes one word if the other's is not up. Without fence.sc between store and look in both, both looks may give
// zero, and both write (R-MO2). No run in order shows it: one of the looks comes after both stores.
// backends: cpu
// launch: grid=2 block=32
// arg:    flags u32[64]=zeros
// arg:    out f32[1]=zeros
// expect: global-race WAW @write @write severity=error
// expect: missing-order RAW @store @look severity=warning
// result: flags = np.where(np.arange(64) % 32, 0, 1)
#define LOAD(v, p) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory")
extern "C" __global__ void kernel(unsigned* flags, float* out) {
    if (threadIdx.x) return;
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flags + blockIdx.x * 32) : "memory");  /*@store*/
#ifdef RACY
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
#else
    asm volatile("fence.sc.gpu;" ::: "memory");
#endif
    unsigned other;
    LOAD(other, flags + (blockIdx.x ^ 1) * 32);  /*@look*/
    if (other == 0) out[0] = 1.0f + blockIdx.x;  /*@write*/
}
