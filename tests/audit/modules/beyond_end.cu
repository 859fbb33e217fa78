// A grid that covers more elements than there are, without a test. Two kernels, and streams and events between them.
// expect: added out-of-bounds
#include "harness.h"

__constant__ float offsets[4];

__global__ void filled(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = i;
}

__global__ void added(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifndef BUG
  if (i < n)
#endif
    out[i] += offsets[i % 4];
}

int main() {
  float host[4] = {1, 2, 3, 4};
  CHECK(cudaMemcpyToSymbol(offsets, host, sizeof host));
  cudaStream_t stream;
  cudaEvent_t event;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&event));
  int n = 1000;
  float *out = on_device<float>(n);
  filled<<<8, 128, 0, stream>>>(out, n);
  CHECK(cudaEventRecord(event, stream));
  added<<<(n + 511) / 512 + 2, 512, 0, stream>>>(out, n);
  if (cudaStreamSynchronize(stream) != cudaSuccess)
    return 1;
  return from_device(out, n)[5] == 7.0f ? 0 : 2;
}
