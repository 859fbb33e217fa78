// The copies of <cuda_pipeline_primitives.h>: the report must show the call in this file, not the header's inline asm.
// launch: grid=1 block=64
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: missing-wait @copy @read severity=error
// result: out = x[::-1]
#include <cuda_pipeline_primitives.h>
#ifdef RACY
#define PENDING 1
#else
#define PENDING 0
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float tile[256];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[4 * t], &x[4 * t], 16);  /*@copy*/
    __pipeline_commit();
    __pipeline_wait_prior(PENDING);
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        out[k * 64 + t] = tile[255 - (k * 64 + t)];  /*@read*/
    }
}
