// As crossed_guard_a_store, where atomics raise the flags and look at them: relaxed ones order nothing (R-MO2).
// backends: cpu
// launch: grid=2 block=32
// arg:    flags u32[64]=zeros
// arg:    out f32[1]=zeros
// expect: global-race WAW @write @write severity=error
// expect: missing-order RAW @store @look severity=warning
// result: flags = np.where(np.arange(64) % 32, 0, 1)
extern "C" __global__ void kernel(unsigned* flags, float* out) {
    if (threadIdx.x) return;
    atomicExch(flags + blockIdx.x * 32, 1);  /*@store*/
#ifndef RACY
    __threadfence();
#endif
    if (atomicAdd(flags + (blockIdx.x ^ 1) * 32, 0) == 0) out[0] = 1.0f + blockIdx.x;  /*@look*/ /*@write*/
}
