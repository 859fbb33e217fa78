// As dekker_no_fence, where all threads load from one place how far the flags are apart, as a program of several GPUs loads the number of its rank. That
// is no table which names the words: each CTA's flag is its own (R-MO2).
// backends: cpu
// launch: grid=2 block=32
// arg:    apart u32[33]=arange
// arg:    flags u32[64]=zeros
// arg:    out f32[2]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: flags = np.where(np.arange(64) % 32, 0, 1)
extern "C" __global__ void kernel(const unsigned* apart, volatile unsigned* flags, float* out) {
    if (threadIdx.x) return;
    unsigned stride = apart[32];
    flags[blockIdx.x * stride] = 1;  /*@store*/
#ifndef RACY
    __threadfence();
#endif
    if (flags[(blockIdx.x ^ 1) * stride] == 0) out[blockIdx.x] = 1;  /*@load*/
}
