// One function stores, another one loads: the barrier belongs between the two calls, whatever the schedule.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race RAW @store @load severity=error
// result: out = x[::-1]
__device__ __noinline__ void put(float* p, int i, float v) { p[i] = v; }        /*@store*/
__device__ __noinline__ float get(const float* p, int i) { return p[i]; }       /*@load*/
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float box[64];
    put(box, threadIdx.x, x[threadIdx.x]);
#ifndef RACY
    __syncthreads();
#endif
    out[threadIdx.x] = get(box, 63 - threadIdx.x);
}
