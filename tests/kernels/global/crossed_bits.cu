// Dekker's handshake by atomics on each thread's own word: one sets a bit, the other adds one. No result is used, and the looks are an atomic that
// adds nothing and a load. Without fence.sc between, both may find the other's word even, as it was (R-MO2).
// backends: cpu
// launch: grid=2 block=32
// arg:    flags u32[64]=arange
// arg:    out f32[1]=zeros
// expect: global-race WAW @write @write severity=error
// expect: missing-order RAW severity=warning
// result: flags = np.arange(64) + np.where(np.arange(64) % 32, 0, 1)
extern "C" __global__ void kernel(unsigned* flags, float* out) {
    if (threadIdx.x) return;
    unsigned* own = flags + 32 * blockIdx.x;
    if (blockIdx.x == 0) atomicOr(own, 1u);
    else atomicAdd(own, 1u);
#ifndef RACY
    __threadfence();
#endif
    unsigned other;
    if (blockIdx.x == 0) other = *(volatile unsigned*)(flags + 32);
    else other = atomicAdd(flags, 0u);
    if (other % 2 == 0) out[0] = 1.0f + blockIdx.x;  /*@write*/
}
