// Each lane adds up values of its own; in the racy twin all lanes of a warp do so in one element, and no barrier makes that right.
// launch: grid=1 block=64
// arg: x f32[512]=arange
// arg: out f32[64]=zeros
// expect: data-race WAW @clear @add severity=error
// expect: data-race WAW @add @add severity=error
// allow: data-race @clear @clear
// result: out = x.reshape(64, 8).sum(axis=1)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float sums[64];
    int t = threadIdx.x;
#ifdef RACY
    int own = t / 32;
#else
    int own = t;
#endif
    sums[own] = 0.0f;  /*@clear*/
#pragma unroll 1
    for (int k = 0; k < 8; k++) sums[own] += x[t * 8 + k];  /*@add*/
    out[t] = sums[own];
}
