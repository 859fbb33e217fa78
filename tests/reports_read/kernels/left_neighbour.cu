// A stencil reads its left neighbour; thread 0 has none.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: out-of-bounds @read severity=error
// result: out = np.concatenate([x[:1], x[:-1]])
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float row[64];
    int t = threadIdx.x;
    row[t] = x[t];
    __syncthreads();
#ifdef RACY
    out[t] = row[t - 1];               /*@read*/
#else
    out[t] = row[t > 0 ? t - 1 : 0];   /*@read*/
#endif
}
