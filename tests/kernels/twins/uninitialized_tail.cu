// The last tile is only partly filled, and everybody reads all of it: the racy twin does not pad it with zeros.
// launch: grid=2 block=64
// arg: x f32[100]=random
// arg: out f32[2]=zeros
// arg: n i32=100
// expect: uninitialized-read @read severity=error
// result: out = np.array([x[:64].sum(), x[64:].sum()])
extern "C" __global__ void kernel(const float* x, float* out, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
#ifdef RACY
    if (i < n) tile[t] = x[i];
#else
    tile[t] = i < n ? x[i] : 0.0f;
#endif
    __syncthreads();
    if (t == 0) {
        float sum = 0.0f;
        for (int k = 0; k < 64; k++) {
            sum += tile[k];  /*@read*/
        }
        out[blockIdx.x] = sum;
    }
}
