// Dekker's trial: each of two CTAs raises its flag and works if the other's is not up. Without fence.sc between store and load in both, both may work.
// No run in order shows it: one of the loads comes after both stores.
// backends: cpu
// launch: grid=2 block=32
// arg:    flags u32[64]=zeros
// arg:    out f32[2]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: flags = np.where(np.arange(64) % 32, 0, 1)
extern "C" __global__ void kernel(volatile unsigned* flags, float* out) {
    if (threadIdx.x) return;
    flags[blockIdx.x * 32] = 1;  /*@store*/
#ifndef RACY
    __threadfence();
#endif
    if (flags[(blockIdx.x ^ 1) * 32] == 0) out[blockIdx.x] = 1;  /*@load*/
}
