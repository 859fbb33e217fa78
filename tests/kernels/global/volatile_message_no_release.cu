// R-MO1, the release side, in a loop: each CTA hands a sum to the next one through volatile words, and nothing publishes it before the flag.
//
// launch: grid=3 block=32
// arg:    sums f32[3]=zeros
// arg:    flags u32[3]=zeros
// arg:    out f32[3]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.float32([1, 3, 6])
extern "C" __global__ void kernel(volatile float* sums, volatile unsigned* flags, float* out) {
    if (threadIdx.x) return;
    float sum = blockIdx.x + 1;
    if (blockIdx.x) {
        while (!flags[blockIdx.x - 1]) {}
        __threadfence();
        sum += sums[blockIdx.x - 1];  /*@load*/
    }
    sums[blockIdx.x] = sum;  /*@store*/
#ifndef RACY
    __threadfence();
#endif
    flags[blockIdx.x] = 1;
    out[blockIdx.x] = sum;
}
