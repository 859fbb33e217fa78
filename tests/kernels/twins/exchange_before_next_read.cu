// Lanes pass values on through shared memory, and reduce what they have read. The exchange orders a write behind the reads before it; the reads
// behind the write need bar.warp.sync.
// launch: grid=1 block=32
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = np.full(32, 32 * 32 * x.sum())
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[32];
    int t = threadIdx.x;
    float value = x[t];
#pragma unroll 1
    for (int i = 0; i < 3; ++i) {
        s[t] = value;  /*@write*/
#ifndef RACY
        __syncwarp();
#endif
        value = s[31 - t];  /*@read*/
        for (int step = 16; step; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    }
    out[t] = value;
}
