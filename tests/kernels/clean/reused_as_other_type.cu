// One buffer used as floats, then as bytes, then as doubles, with a barrier at each change.
// launch: grid=1 block=64 smem=512
// arg: x f32[64]=arange
// arg: out f64[64]=zeros
// result: out = x + x[::-1].astype(np.uint8)
extern "C" __global__ void kernel(const float* x, double* out) {
    extern __shared__ __align__(8) unsigned char raw[];
    int t = threadIdx.x;
    ((float*)raw)[t] = x[t];
    __syncthreads();
    float a = ((float*)raw)[63 - t];
    __syncthreads();
    raw[t] = (unsigned char)a;
    __syncthreads();
    double b = raw[63 - t];
    __syncthreads();
    ((double*)raw)[t] = a + b * 0.0;
    __syncthreads();
    out[t] = ((double*)raw)[63 - t] + raw[64 * 8 - 1] * 0.0 + (double)(unsigned char)a;
}
