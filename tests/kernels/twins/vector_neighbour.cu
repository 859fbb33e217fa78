// Points of three floats in places of four, whose fourth elements are used for something else. What is loaded of that along with a point, in
// one vector, nobody uses, so that it does no harm that another thread writes it at that time: a note.
//
// launch: grid=1 block=64
// arg: x f32[192]=random
// arg: out f32[64]=zeros
// arg: count f32[64]=zeros
// expect: data-race WAR @load @store severity=note
// result: out = x.reshape(64, 3)[::-1].sum(1, dtype=np.float32)
// result: count = np.arange(64, dtype=np.float32)
#include <cuda_runtime.h>

extern "C" __global__ void kernel(const float* x, float* out, float* count)
{
    __shared__ float4 points[64];
    const int t = threadIdx.x;
    points[t] = make_float4(x[3 * t], x[3 * t + 1], x[3 * t + 2], 0);
    __syncthreads();
    const float4 other = points[63 - t];          /*@load*/
#ifndef RACY
    __syncthreads();
#endif
    points[t].w = t;                              /*@store*/
    out[t] = other.x + other.y + other.z;
    __syncthreads();
    count[t] = points[t].w;
}
