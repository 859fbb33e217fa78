// The common block reduction: shuffles inside the warps, shared memory between them.
// launch: grid=2 block=128
// arg: x f32[256]=random
// arg: out f32[2]=zeros
// result: out = x.reshape(2, 128).sum(axis=1)
__device__ float warp_sum(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    return v;
}
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float partial[4];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    float v = warp_sum(x[blockIdx.x * 128 + t]);
    if (lane == 0) partial[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = warp_sum(lane < 4 ? partial[lane] : 0.0f);
        if (lane == 0) out[blockIdx.x] = v;
    }
}
