// One thread stores a scalar, and all use it in a loop. In the racy twin no barrier lies between, and the compiler takes the load out of the loop.
// launch: grid=1 block=128
// arg: x f32[512]=random
// arg: out f32[128]=zeros
// expect: data-race @write @read severity=error
// result: out = (x.reshape(4, 128) / x[0]).sum(axis=0)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float scale;
    const unsigned t = threadIdx.x;
    float sum = 0;
    if (t == 0) scale = x[0];  /*@write*/
#ifndef RACY
    __syncthreads();
#endif
    for (int i = 0; i < 4; i++) {
        float v = x[i * 128 + t];
        sum += v / scale;  /*@read*/
    }
    out[t] = sum;
}
