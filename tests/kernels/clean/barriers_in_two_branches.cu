// Warps that meet at different bar.sync of inline assembly, which is legal PTX, and at two copies of one __syncthreads() of the source.
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// result: out = x[::-1] + x
__device__ __forceinline__ void meet() { __syncthreads(); }
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[128];
    int t = threadIdx.x;
    tile[t] = x[t];
    if (t < 64) {
        asm volatile("bar.sync 0;" ::: "memory");
        out[t] = tile[127 - t];
    } else {
        asm volatile("bar.sync 0;" ::: "memory");
        out[t] = tile[127 - t] * 1.0f;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        meet();
        out[t] += tile[t] / 2;
    }
}
