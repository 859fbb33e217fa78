// A write needs what the lanes have exchanged of the values that they have read: behind these reads in fact, and a race by the ISA.
// launch: grid=1 block=32
// policy: isa
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: data-race WAR @read @write severity=warning
// result: out = np.full(32, x.sum())
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    float sum = s[31 - t];  /*@read*/
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
#ifndef RACY
    __syncwarp();
#endif
    s[t] = sum;  /*@write*/
    __syncwarp();
    out[t] = s[(t + 1) % 32];
}
