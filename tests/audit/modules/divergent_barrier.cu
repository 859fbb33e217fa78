// A barrier within a branch that half of the threads take.
// expect: shifted *
#include "harness.h"

__global__ void shifted(int *data) {
  __shared__ int tile[64];
  int t = threadIdx.x;
  tile[t] = data[t];
#ifdef BUG
  if (t < 32)
    __syncthreads();
#else
  __syncthreads();
#endif
  data[t] = tile[(t + 1) % 64];
}

int main() {
  shifted<<<1, 64>>>(on_device(64, 1));
  CHECK(cudaDeviceSynchronize());
}
