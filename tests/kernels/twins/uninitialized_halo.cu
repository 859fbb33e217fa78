// A stencil tile with a halo of one that the racy twin forgets to fill.
// launch: grid=2 block=64
// arg: x f32[128]=random
// arg: out f32[128]=zeros
// arg: n i32=128
// expect: uninitialized-read @left severity=error
// expect: uninitialized-read @right severity=error
// result: out = np.convolve(x, np.ones(3, np.float32), "same")
extern "C" __global__ void kernel(const float* x, float* out, int n) {
    __shared__ float tile[66];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    tile[t + 1] = x[i];
#ifndef RACY
    if (t == 0) tile[0] = i > 0 ? x[i - 1] : 0.0f;
    if (t == 63) tile[65] = i + 1 < n ? x[i + 1] : 0.0f;
#endif
    __syncthreads();
    float left = tile[t];  /*@left*/
    float middle = tile[t + 1];
    float right = tile[t + 2];  /*@right*/
    out[i] = left + middle + right;
}
