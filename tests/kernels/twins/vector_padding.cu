// Points of three floats in places of four: the compiler loads whole vectors. Nobody uses the fourth element, which nobody has written:
// worth a note, no more.
//
// launch: grid=1 block=64
// arg: x f32[192]=random
// arg: out f32[64]=zeros
// expect: uninitialized-read @load severity=note
// result: out = x.reshape(64, 3)[::-1].sum(1, dtype=np.float32)
#include <cuda_runtime.h>

extern "C" __global__ void kernel(const float* x, float* out)
{
    __shared__ float4 points[64];
    const int t = threadIdx.x;
    points[t].x = x[3 * t];
    points[t].y = x[3 * t + 1];
    points[t].z = x[3 * t + 2];
#ifndef RACY
    points[t].w = 0;
#endif
    __syncthreads();
    const float4 other = points[63 - t];          /*@load*/
    out[t] = other.x + other.y + other.z;
}
