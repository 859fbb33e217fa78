// Lanes that return early, in a loop or before one, are not waited for: neither by barriers nor by shuffles.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t % 32 >= 24) { out[t] = x[t]; return; }
    for (int i = 0; i < 4; ++i) {
        if (t % 32 == 16 + i) { out[t] = x[t]; return; }
        tile[t] = x[t] + i;
        __syncthreads();
        tile[t] += 0 * __shfl_sync(0xffffffff, x[t], 0);
        __syncthreads();
    }
    out[t] = tile[t] - 3;
}
