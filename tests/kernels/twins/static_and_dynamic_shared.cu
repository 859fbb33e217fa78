// Static and dynamic shared memory side by side: the race is on the dynamic part alone.
// launch: grid=1 block=128 smem=512
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1] + np.roll(x, -1)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float fixed[128];
    extern __shared__ float dynamic[];
    int t = threadIdx.x;
    fixed[t] = x[t];
    dynamic[t] = 0.0f;
    __syncthreads();
    dynamic[t] = x[t];  /*@write*/
#ifndef RACY
    __syncthreads();
#endif
    float neighbour = fixed[(t + 1) % 128];
    out[t] = neighbour + dynamic[127 - t];  /*@read*/
}
