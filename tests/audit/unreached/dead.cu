// One kernel of two is never launched; a template has no instance.
// expect: first clean
// expect: second not reached
// expect: third not reached
#include "harness.h"

__global__ void first(int *p) { p[threadIdx.x] = threadIdx.x; }
__global__ void second(int *p) { p[threadIdx.x % 2] = threadIdx.x; }
template <typename T> __global__ void third(T *p) { p[threadIdx.x % 2] = threadIdx.x; }

int main() {
  first<<<1, 64>>>(on_device(64, 0));
  CHECK(cudaDeviceSynchronize());
}
