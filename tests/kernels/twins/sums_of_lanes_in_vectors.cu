// Each half of a warp sums its values, and all of its lanes store two sums as one vector, as reductions of Triton do. Product and sum are one
// operation here, so that the sums of two lanes differ by rounding. Those of the halves are next to each other, and are other sums: they need a place each.
// launch: grid=2 block=32
// arg: x f32[32]=arange
// arg: out f32[4]=zeros
// expect: data-race WAW @store severity=error
// result: out = np.rint(np.float32([sum((0.1 * (64 + np.arange(16))) ** 2), sum((0.1 * (65 + np.arange(16))) ** 2)] * 2) / 100)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float2 s[2];
    int t = threadIdx.x, half = t / 16;
    float v = 0.1f * (64 + x[t % 16]) * (1 + 1e-5f * half), w = 0.1f * (65 + x[t % 16]) * (1 + 1e-5f * half);
    float first = __fmul_rn(v, v), second = __fmul_rn(w, w);
    float one = __fmaf_rn(v, v, __shfl_xor_sync(~0u, first, 8)), two = __fmaf_rn(w, w, __shfl_xor_sync(~0u, second, 8));
    for (int step = 4; step; step /= 2) one += __shfl_xor_sync(~0u, one, step), two += __shfl_xor_sync(~0u, two, step);
#ifdef RACY
    s[0] = make_float2(one, two);  /*@store*/
#else
    s[half] = make_float2(one, two);  /*@store*/
#endif
    __syncthreads();
    if (blockIdx.x == 0 && t < 4) out[t] = rintf((t % 2 ? s[0].y : s[0].x) / 100);
}
