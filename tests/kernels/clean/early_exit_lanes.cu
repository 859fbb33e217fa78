// Some lanes of the last warp leave before the barrier: a warp arrives with the lanes that it still has.
// launch: grid=1 block=64
// arg: x f32[50]=arange
// arg: out f32[50]=zeros
// arg: n i32=50
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t >= n) return;
    tile[t] = x[t];
    __syncthreads();
    out[t] = tile[n - 1 - t];
}
