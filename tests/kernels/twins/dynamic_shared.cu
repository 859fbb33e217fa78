// Shared memory whose size only the launch knows.
// launch: grid=1 block=128 smem=512
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    extern __shared__ float dynamic[];
    int t = threadIdx.x;
    dynamic[t] = 0.0f;
    __syncthreads();
    dynamic[t] = x[t];  /*@write*/
#ifndef RACY
    __syncthreads();
#endif
    out[t] = dynamic[127 - t];  /*@read*/
}
