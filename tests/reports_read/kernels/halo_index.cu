// Each thread stores its number and its right neighbour's place; the last one leaves the array.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: out-of-bounds @write severity=error
// allow: data-race
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float row[64];
    int t = threadIdx.x;
    row[t] = x[t];
    __syncthreads();
#ifdef RACY
    if (t % 2) row[t + 1] = x[t];  /*@write*/
#else
    if (t % 2) row[t] = x[t];      /*@write*/
#endif
    __syncthreads();
    out[t] = t % 2 ? x[t] : row[t];
}
