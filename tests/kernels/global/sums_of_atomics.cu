// G8, G2: sums by atomics that return nothing, then the last CTA reads them. What such an atomic has met tells its thread nothing (D22), so the
// fence behind the counter is needed even where the last CTA also adds last.
//
// launch: grid=4 block=64
// arg:    x f32[4,64]=arange
// arg:    sums f32[64]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[64]=zeros
// expect: global-race @add @read severity=error
// result: out = 0.25 * x.sum(0)
extern "C" __global__ void kernel(const float* __restrict__ x, float* sums, unsigned* count, float* out) {
    __shared__ bool last;
    atomicAdd(sums + threadIdx.x, x[blockIdx.x * 64 + threadIdx.x]);  /*@add*/
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
#ifndef RACY
    __threadfence();
#endif
    out[threadIdx.x] = 0.25f * sums[threadIdx.x];  /*@read*/
}
