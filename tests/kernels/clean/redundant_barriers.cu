// More barriers and fences than needed are a matter of speed, not of correctness.
// launch: grid=1 block=96
// arg: x f32[96]=arange
// arg: out f32[96]=zeros
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[96];
    int t = threadIdx.x;
    __syncthreads();
    tile[t] = x[t];
    __threadfence_block();
    __syncthreads();
    __syncwarp();
    __syncthreads();
    out[t] = tile[95 - t];
    __syncthreads();
}
