// R-GM9: a thread of each CTA waits for the flag of the CTA before. Without a barrier behind it the other warps have not acquired.
//
// launch: grid=3 block=64
// arg:    x f32[64]=arange
// arg:    rows f32[192]=zeros
// arg:    flags u32[3]=zeros
// expect: global-race RAW @write @read severity=error
// result: rows = np.concatenate([x, x + x[::-1], x + (x + x[::-1])[::-1]])
extern "C" __global__ void kernel(const float* x, float* rows, unsigned* flags) {
    int t = threadIdx.x, cta = blockIdx.x;
    float value = x[t];
    if (cta > 0) {
        if (t == 0) {
            while (atomicAdd(&flags[cta - 1], 0) == 0) {}
            __threadfence();
        }
#ifndef RACY
        __syncthreads();
#endif
        value += rows[(cta - 1) * 64 + 63 - t];  /*@read*/
    }
    rows[cta * 64 + t] = value;  /*@write*/
    __syncthreads();
    if (t == 0) {
        __threadfence();
        atomicExch(&flags[cta], 1);
    }
}
