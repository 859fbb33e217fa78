// The last CTA sums what the others have written. Without a fence it may read what was there before.
// expect: summed global-race
#include "harness.h"

__device__ unsigned int arrived;

__global__ void summed(const float *in, float *partial, float *out) {
  __shared__ bool last;
  float value = in[blockIdx.x * 32 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(0xffffffff, value, step);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = value;
#ifndef BUG
    __threadfence();
#endif
    last = atomicAdd(&arrived, 1) == gridDim.x - 1;
#ifndef BUG
    __threadfence();
#endif
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i)
      sum += partial[i];
    *out = sum;
  }
}

int main() {
  summed<<<4, 32>>>(on_device(128, 1.0f), on_device(4, 0.0f), on_device(1, 0.0f));
  CHECK(cudaDeviceSynchronize());
}
