// The barrier sits in a called function, away from the accesses that it orders.
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
__device__ __noinline__ void meet(int* arrivals) {
    atomicAdd(arrivals, 1);
#ifndef RACY
    __syncthreads();
#endif
}
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[128];
    __shared__ int arrivals;
    int t = threadIdx.x;
    tile[t] = 0.0f;
    if (t == 0) arrivals = 0;
    __syncthreads();
    tile[t] = x[t];  /*@write*/
    meet(&arrivals);
    out[t] = tile[127 - t];  /*@read*/
}
