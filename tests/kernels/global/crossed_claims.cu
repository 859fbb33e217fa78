// Each of two CTAs claims its own word by a compare-and-swap, goes on only if that has set it, and then looks at the other's word. The result
// of the swap is used, so its read is over; its write may still come behind the look (R-MO2).
// backends: cpu
// launch: grid=2 block=32
// arg:    flags u32[64]=zeros
// arg:    out f32[1]=zeros
// expect: global-race WAW @write @write severity=error
// expect: missing-order RAW @claim @look severity=warning
// result: flags = np.where(np.arange(64) % 32, 0, 1)
extern "C" __global__ void kernel(unsigned* flags, float* out) {
    if (threadIdx.x) return;
    unsigned me = blockIdx.x;
    if (atomicCAS(flags + 32 * me, 0u, 1u)) return;  /*@claim*/
#ifndef RACY
    __threadfence();
#endif
    if (*(volatile unsigned*)(flags + 32 * (me ^ 1)) == 0) out[0] = 1.0f + me;  /*@look*/ /*@write*/
}
