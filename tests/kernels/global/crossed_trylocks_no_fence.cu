// Each of two CTAs takes its lock by an atomic and works if the other's is free, which it looks at by an atomic that adds nothing.
// These are relaxed, so without fence.sc between the two in both, both may work (R-MO2).
// backends: cpu
// launch: grid=2 block=32
// arg:    locks u32[128]=zeros
// arg:    out f32[2]=zeros
// expect: missing-order RAW @take @look severity=warning
// expect: missing-order RAW @exchange @load severity=warning
// result: locks = np.where(np.arange(128) % 32, 0, 1)
extern "C" __global__ void kernel(unsigned* locks, float* out) {
    if (threadIdx.x) return;
    unsigned own = blockIdx.x * 32, other = own ^ 32;
    if (atomicCAS(locks + own, 0, 1)) return;  /*@take*/
#ifndef RACY
    __threadfence();
#endif
    if (atomicAdd(locks + other, 0) == 0) out[blockIdx.x] = 1;  /*@look*/
    if (atomicExch(locks + 64 + own, 1)) return;  /*@exchange*/
#ifndef RACY
    __threadfence();
#endif
    if (*(volatile unsigned*)(locks + 64 + other) == 0) out[blockIdx.x] = 2;  /*@load*/
}
