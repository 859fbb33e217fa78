// Two of four warps leave before the barrier: nobody waits for threads that have exited.
// launch: grid=1 block=128
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// arg: n i32=64
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t >= n) return;
    tile[t] = x[t];
    __syncthreads();
    out[t] = tile[63 - t];
}
