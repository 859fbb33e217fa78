// Four numbers a thread; the input is not a multiple of that.
// backends: cpu
// launch: grid=1 block=32
// arg: x f32[126]=arange
// arg: out f32[32]=zeros
// arg: n i32=126
// expect: out-of-bounds @read severity=error
// result: out = np.pad(x, (0, 2)).reshape(32, 4).sum(axis=1)
extern "C" __global__ void kernel(const float* x, float* out, int n) {
    int t = threadIdx.x;
    float sum = 0;
    for (int i = 4 * t; i < 4 * t + 4; i++) {
#ifdef RACY
        sum += x[i];               /*@read*/
#else
        if (i < n) sum += x[i];    /*@read*/
#endif
    }
    out[t] = sum;
}
