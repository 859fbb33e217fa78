// Layer norm with block reductions that share one scratch array, vector loads, and a residual add in place.
// launch: grid=4 block=128
// arg: x f32[4,256]=random
// arg: gamma f32[256]=random
// arg: y f32[4,256]=zeros
// bug 1: data-race scratch of the first reduction is reused without a barrier
// bug 2: data-race no barrier before warp 0 reads the scratch
// bug 3: data-race result broadcast without a barrier
// bug 4: global-race next row's write overlaps: off by one
// bug 5: data-race|barrier-misuse shuffle with a mask of 8 lanes by 4: lanes missing
// bug 6: clean one barrier less thanks to two scratch arrays
__device__ float warp_sum(float v) {
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    return v;
}
__device__ float block_sum(float v, float* scratch) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = warp_sum(v);
#if BUG != 1 && BUG != 6
    __syncthreads();
#endif
    if (lane == 0) scratch[warp] = v;
#if BUG != 2
    __syncthreads();
#endif
#if BUG == 3
    if (warp == 0) {
        v = lane < 4 ? scratch[lane] : 0.f;
        v = warp_sum(v);
        if (lane == 0) scratch[0] = v;
    }
    return scratch[0];
#else
#if BUG == 5
    if (threadIdx.x % 32 < 8) {
        v = scratch[lane % 4];
        v += __shfl_xor_sync(0xf, v, 1);
    }
#endif
    v = scratch[lane % 4];
    v += __shfl_xor_sync(~0u, v, 1);
    v += __shfl_xor_sync(~0u, v, 2);
    return v;
#endif
}
extern "C" __global__ void kernel(const float* x, const float* gamma, float* y) {
    __shared__ float scratch[2][4];
    const int t = threadIdx.x, row = blockIdx.x;
    float2 v = reinterpret_cast<const float2*>(x + row * 256)[t];
    float mean = block_sum(v.x + v.y, scratch[0]) / 256.f;
    float2 c = make_float2(v.x - mean, v.y - mean);
#if BUG == 6
    float var = block_sum(c.x * c.x + c.y * c.y, scratch[1]) / 256.f;
#else
    float var = block_sum(c.x * c.x + c.y * c.y, scratch[0]) / 256.f;
#endif
    float inv = rsqrtf(var + 1e-5f);
    float2 g = reinterpret_cast<const float2*>(gamma)[t];
    float* out = y + row * 256;
    out[2 * t] = c.x * inv * g.x;
    out[2 * t + 1] = c.y * inv * g.y;
#if BUG == 4
    if (t == 127 && row < 3) out[256] = 0.f;
#endif
}
