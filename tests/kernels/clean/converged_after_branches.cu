// Lanes of a warp do different things, for different times, and then meet: at a barrier, a shuffle, a vote, a match.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    float v = x[t];
    if (t % 3 == 0) v += 1; else if (t % 3 == 1) { for (int i = 0; i < t; ++i) v += (i & 1) - (i & 1); }
    tile[t] = v;
    __syncthreads();
    for (int i = 0; i < t % 5; ++i) v = v * 0 + tile[63 - t];
    v += 0 * __shfl_xor_sync(0xffffffff, v, 3) + 0 * __ballot_sync(0xffffffff, t & 1) + 0 * __match_any_sync(0xffffffff, t & 3);
    if (t & 1) v += 0; else __threadfence_block();
    __syncthreads();
    out[t] = tile[t] - (t % 3 == 0) + 0 * v;
}
