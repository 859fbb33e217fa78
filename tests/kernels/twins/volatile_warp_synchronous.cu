// The old style of a warp's last steps: volatile accesses are strong (PTX ISA, "Moral strength"), hence no data race, and since Volta the lanes
// need not run in step. R-MO1, between lanes.
// launch: grid=1 block=32
// arg: x f32[32]=arange
// arg: out f32[1]=zeros
// expect: missing-order RAW @add @add severity=warning
// result: out = x.sum().reshape(1)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[64];
    volatile float* v = s;
    int t = threadIdx.x;
    v[t] = x[t];
    v[t + 32] = 0.0f;
    __syncwarp();
#pragma unroll 1
    for (int d = 16; d; d >>= 1) {
        float sum = v[t] + v[t + d];  /*@add*/
#ifndef RACY
        __syncwarp();
#endif
        v[t] = sum;  /*@add*/
#ifndef RACY
        __syncwarp();
#endif
    }
    if (t == 0) out[0] = v[0];
}
