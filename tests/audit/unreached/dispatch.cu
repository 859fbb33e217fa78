// The path of the fast kernel is never taken: its condition is always false.
// expect: fast not reached
// expect: slow clean
#include "harness.h"

__global__ void fast(float *p) { p[threadIdx.x + 1] = p[threadIdx.x]; }
__global__ void slow(float *p) { p[threadIdx.x] = 2 * p[threadIdx.x]; }

int main(int count, char **) {
  float *p = on_device(65, 1.0f);
  if (count > 64)
    fast<<<1, 64>>>(p);
  else
    slow<<<1, 64>>>(p);
  CHECK(cudaDeviceSynchronize());
}
