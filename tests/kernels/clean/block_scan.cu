// A Hillis-Steele scan between two buffers, one barrier a step.
// launch: grid=1 block=128
// arg: x i32[128]=random
// arg: out i32[128]=zeros
// result: out = np.cumsum(x)
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int s[2][128];
    int t = threadIdx.x, from = 0;
    s[0][t] = x[t];
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        s[1 - from][t] = s[from][t] + (t >= d ? s[from][t - d] : 0);
        from = 1 - from;
        __syncthreads();
    }
    out[t] = s[from][t];
}
