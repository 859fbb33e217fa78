// Each CTA normalises with the mean, which another CTA may not have written yet.
// expect: normalised global-race
#include "harness.h"

__device__ float mean;

__global__ void averaged(const float *x, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i)
    sum += x[i];
  if (threadIdx.x == 0)
    mean = sum / n;
}

__global__ void normalised(const float *x, float *y, int n) {
#ifdef BUG
  if (blockIdx.x == 0 && threadIdx.x == 0)
    mean = x[0];
#endif
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i] - mean;
}

int main() {
  float *x = on_device(128, 3.0f), *y = on_device(128, 0.0f);
  averaged<<<1, 32>>>(x, 128);
  normalised<<<4, 32>>>(x, y, 128);
  float got = 0;
  CHECK(cudaMemcpyFromSymbol(&got, mean, sizeof got));
  return got == 3.0f ? 0 : 1;
}
