// A statement of a warp-synchronous reduction, with volatile accesses: it needs one __syncwarp() between its reads and its write, and another one
// before its sum is read.
// launch: grid=1 block=32
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: missing-order WAR @add @add severity=warning
// expect: missing-order RAW @add @read severity=warning
// allow: missing-order @add @read severity=warning
// result: out = (x + np.roll(x, -16))[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[32];
    volatile float* v = s;
    int t = threadIdx.x;
    v[t] = x[t];
    __syncwarp();
#ifdef RACY
    v[t] += v[t ^ 16];  /*@add*/
#else
    float sum = v[t] + v[t ^ 16];
    __syncwarp();
    v[t] = sum;
    __syncwarp();
#endif
    out[t] = v[31 - t];  /*@read*/
}
