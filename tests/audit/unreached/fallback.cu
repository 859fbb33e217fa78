// A launch that the device refuses: the host computes the result instead, and it is right.
// expect: scaled not reached
#include "harness.h"

__global__ void scaled(float *p) { p[threadIdx.x] = 2 * p[threadIdx.x ^ 1]; }

int main() {
  float *p = on_device(4096, 1.0f);
  scaled<<<1, 4096>>>(p); // more threads than a CTA can have
  std::vector<float> values = from_device(p, 4096);
  if (cudaGetLastError() != cudaSuccess)
    for (float &each : values) each *= 2;
  return values[17] == 2.0f ? 0 : 1;
}
