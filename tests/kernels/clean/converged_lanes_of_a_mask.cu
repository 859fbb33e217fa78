// Parts of a warp meet by themselves, with masks that name who is there: in branches, of active lanes, of equal keys.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x, lane = t % 32;
    tile[t] = x[t];
    float v = 0;
    if (lane < 8) { __syncwarp(0xff); v = __shfl_xor_sync(0xff, tile[t ^ 1], 1); }
    else if (lane < 16) { v = __shfl_xor_sync(0xff00, tile[t], 2); __syncwarp(0xff00); v = __shfl_xor_sync(0xff00, v, 2); }
    else { unsigned mask = __activemask(); v = tile[t] + 0 * __popc(__ballot_sync(mask, 1)); __syncwarp(mask); }
    unsigned half = lane < 16 ? 0xffff : 0xffff0000;
    v = __shfl_sync(half, v, lane);
    unsigned peers = __match_any_sync(0xffffffff, lane % 4);
    v += 0 * __shfl_sync(peers, v, __ffs(peers) - 1);
    out[t] = v;
}
