// Two warps have the same 32 values and sum their squares, and all lanes of both store the sum to one slot, as reductions of Triton do. Product
// and sum are one operation here, so that the sums of two lanes differ by rounding. With shuffles from higher lanes only lane 0 has the sum.
// launch: grid=2 block=128
// arg: x f32[64]=arange
// arg: out f32[2]=zeros
// expect: data-race WAW @store severity=error
// result: out = np.rint(((64 + x).reshape(2, 32) ** 2).sum(1) / 100)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[2];
    int t = threadIdx.x % 64;
    float v = 0.1f * (64 + x[t]), square = __fmul_rn(v, v);
#ifdef RACY
    float sum = __fmaf_rn(v, v, __shfl_down_sync(~0u, square, 16));
    for (int step = 8; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
#else
    float sum = __fmaf_rn(v, v, __shfl_xor_sync(~0u, square, 16));
    for (int step = 8; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
#endif
    s[t / 32] = sum;  /*@store*/
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x < 2) out[t] = rintf(s[t]);
}
