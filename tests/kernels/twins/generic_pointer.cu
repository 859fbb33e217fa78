// Shared memory behind a generic pointer: only at run time is it known what the function's load and store touch.
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
__device__ __noinline__ void put(float* to, int i, float value) {
    to[i] = value;  /*@write*/
}
__device__ __noinline__ float get(const float* from, int i) {
    return from[i];  /*@read*/
}
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[128];
    int t = threadIdx.x;
    tile[t] = 0.0f;
    __syncthreads();
    put(tile, t, get(x, t));
#ifndef RACY
    __syncthreads();
#endif
    put(out, t, get(tile, 127 - t));
}
