// As written_after_exchange.cu, but in the racy twin the lanes exchange another value than the one that they have read, so a lane can write
// before its neighbour has read.
// launch: grid=1 block=32
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: data-race WAR @read @write severity=error
// result: out = x[::-1] + x.sum()
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[32];
    int t = threadIdx.x;
    float own = x[t], sum = own;
    s[t] = own;
    __syncwarp();
    float other = s[31 - t];  /*@read*/
#ifdef RACY
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
#else
    sum = other;
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
#endif
    s[t] = sum;  /*@write*/
    __syncwarp();
    out[t] = other + s[(t + 1) % 32];
}
