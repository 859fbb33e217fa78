// Counts without atomics, in a namespace without a name, through a pointer to the kernel.
// expect: counted global-race
#include "harness.h"

namespace {
__global__ void counted(const int *values, int *counts, size_t n) {
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < n) {
#ifdef BUG
    counts[values[i]] += 1;
#else
    atomicAdd(&counts[values[i]], 1);
#endif
  }
}
} // namespace

int main() {
  const int *values = on_device(256, 3);
  int *counts = on_device(8, 0);
  size_t n = 256;
  auto kernel = counted;
  void *arguments[] = {&values, &counts, &n};
  CHECK(cudaLaunchKernel(kernel, dim3(2), dim3(128), arguments, 0, nullptr));
}
