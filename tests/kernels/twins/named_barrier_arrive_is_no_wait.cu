// bar.arrive is the source of an edge and never its target: who only arrives has waited for nobody.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[64];
    int t = threadIdx.x;
    buffer[t] = 0.0f;
    __syncthreads();
    buffer[t] = x[t];  /*@write*/
#ifdef RACY
    if (t < 32) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    }
#else
    asm volatile("bar.sync 1, 64;" ::: "memory");
#endif
    out[t] = buffer[63 - t];  /*@read*/
}
