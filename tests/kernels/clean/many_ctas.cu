// Many CTAs use the same shared addresses at the same time, each its own memory.
// launch: grid=64 block=64
// arg: x i32[4096]=arange
// arg: out i32[4096]=zeros
// result: out = x.reshape(64, 64)[:, ::-1].reshape(-1)
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int tile[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    tile[t] = x[i];
    __syncthreads();
    out[i] = tile[63 - t];
}
