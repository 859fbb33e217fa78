// A scan that reads and writes one array between two barriers: each element has one writer, so no atomic operation is needed.
// backends: cpu
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race WAR @update severity=error
// result: out = np.cumsum(x)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
#pragma unroll 1
    for (int d = 1; d < 128; d *= 2) {
#ifdef RACY
        if (t >= d) s[t] += s[t - d];  /*@update*/
#else
        float sum = t >= d ? s[t] + s[t - d] : 0;
        __syncthreads();
        if (t >= d) s[t] = sum;        /*@update*/
#endif
        __syncthreads();
    }
    out[t] = s[t];
}
