// All lanes of two warps store one sum, rounded to 16 bits, as in sums_of_lanes. Before that rounding the sums of two lanes are next to each other on
// both sides of the middle between two numbers of 16 bits, so that these are next to each other, too.
// launch: grid=1 block=64
// arg: x f32[32]=arange
// arg: out f32[1]=zeros
// expect: data-race WAW @store severity=error
// result: out = np.float32([67])
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ unsigned short s;
    int t = threadIdx.x;
    float v = 0.18055177f * (64 + x[t % 32]), square = __fmul_rn(v, v);
#ifdef RACY
    float sum = __fmaf_rn(v, v, __shfl_down_sync(~0u, square, 16));
    for (int step = 8; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
#else
    float sum = __fmaf_rn(v, v, __shfl_xor_sync(~0u, square, 16));
    for (int step = 8; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
#endif
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(sum));
    s = half;  /*@store*/
    __syncthreads();
    asm("cvt.f32.f16 %0, %1;" : "=f"(sum) : "h"(s));
    if (t == 0) out[0] = rintf(sum / 100);
}
