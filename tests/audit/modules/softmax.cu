// The sum of a softmax overwrites the maximum before all threads have read it.
// expect: softmax data-race
#include "harness.h"
#include <cfloat>

__global__ void softmax(const float *x, float *y, int n) {
  __shared__ float shared_data[64];
  int t = threadIdx.x;
  const float *row = x + blockIdx.x * n;
  float value = -FLT_MAX;
  for (int i = t; i < n; i += blockDim.x)
    value = fmaxf(value, row[i]);
  shared_data[t] = value;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s)
      shared_data[t] = fmaxf(shared_data[t], shared_data[t + s]);
    __syncthreads();
  }

  float top = shared_data[0], sum = 0;
#ifndef BUG
  __syncthreads();
#endif
  for (int i = t; i < n; i += blockDim.x) sum += expf(row[i] - top);
  shared_data[t] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s)
      shared_data[t] += shared_data[t + s];
    __syncthreads();
  }
  for (int i = t; i < n; i += blockDim.x)
    y[blockIdx.x * n + i] = expf(row[i] - top) / shared_data[0];
}

int main() {
  float *x = on_device(256, 1.0f), *y = on_device(256, 0.0f);
  softmax<<<2, 64>>>(x, y, 128);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
