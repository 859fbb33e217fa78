// Lanes read, exchange what they have read, and write over it: the write needs the result of the exchange, so no read can come after it.
// The ISA orders no memory there (a warning under --policy isa).
// launch: grid=1 block=32
// arg: x f32[32]=arange
// arg: out f32[4,32]=zeros
// result: out = np.stack([np.full(32, x.sum()), x, np.where(x > 3, 1, 0), np.zeros(32)])
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[32], place[32];
    __shared__ int flags[32];
    int t = threadIdx.x;
    s[t] = x[t], place[t] = x[t], flags[t] = t;
    __syncwarp();
    float sum = s[t];
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    s[0] = sum;  // by value
    __syncwarp();
    out[t] = s[0];
    float own = place[t];
    int largest = __reduce_max_sync(~0u, (int)own);
    place[(t + largest) % 32] = own;  // by address
    __syncwarp();
    out[32 + t] = place[(t + 31) % 32];
    bool above = x[t] > 3;
    unsigned many = __ballot_sync(~0u, flags[31 - t] >= 0);
    if (many == ~0u) flags[t] = above;  // by the branch
    __syncwarp();
    out[64 + t] = flags[t];
}
