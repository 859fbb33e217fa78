// The output has one number for each CTA, and every thread stores one.
// backends: cpu
// launch: grid=2 block=32
// arg: x f32[64]=arange
// arg: out f32[2]=zeros
// expect: out-of-bounds @write severity=error
// result: out = x[::32]
extern "C" __global__ void kernel(const float* x, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef RACY
    out[i] = x[i];                                  /*@write*/
#else
    if (threadIdx.x == 0) out[blockIdx.x] = x[i];   /*@write*/
#endif
}
