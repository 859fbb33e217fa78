// Half of a warp reads what the other half has written; the __syncwarp() of the branch leaves the writers out.
// backends: cpu
// launch: grid=1 block=32
// arg: x f32[32]=arange
// arg: out f32[16]=zeros
// expect: data-race RAW @write @read severity=warning
// result: out = x[31:15:-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];  /*@write*/
#ifndef RACY
    __syncwarp();
#endif
    if (t < 16) {
        __syncwarp(0x0000ffff);
        out[t] = s[31 - t];  /*@read*/
    }
}
