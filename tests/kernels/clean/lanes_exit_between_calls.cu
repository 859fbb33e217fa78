// A __syncwarp() in a function that is not inlined waits for no lane that has exited, whatever that did in earlier calls: it was there, or
// all lanes passed by.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// result: out = np.where(np.arange(64) % 32 < 16, 3 * x.reshape(32, 2)[:, ::-1].reshape(64), 0)
__device__ __noinline__ float neighbour(float* s, int t, bool together) {
    if (together) __syncwarp();
    return s[t ^ 1];
}
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    float sum = neighbour(s, t, true) + neighbour(s, t, false);
    if ((t & 31) >= 16) return;
    out[t] = sum + neighbour(s, t, true);
}
