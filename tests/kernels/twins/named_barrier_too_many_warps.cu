// Three warps come to a barrier that counts two: the first two release each other, and the third waits for ever (R-BAR2).
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=1 block=96
// arg: x f32[96]=arange
// arg: out f32[96]=zeros
// expect: deadlock @wait severity=error
// allow: data-race RAW @write @read
// allow: barrier-misuse @wait
// result: out = x[::-1]
#ifdef RACY
#define COUNT "64"
#else
#define COUNT "96"
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[96];
    int t = threadIdx.x;
    tile[t] = x[t];  /*@write*/
    asm volatile("bar.sync 1, " COUNT ";" ::: "memory");  /*@wait*/
    out[t] = tile[95 - t];  /*@read*/
}
