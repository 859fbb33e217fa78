// Threads beyond the end leave before the barrier that the others load a tile for, and their part of the tile is never written.
// expect: summed *
#include "harness.h"

__global__ void summed(const float *in, float *out, int n) {
  __shared__ float tile[64];
  int i = blockIdx.x * 64 + threadIdx.x;
#ifdef BUG
  if (i >= n)
    return;
  tile[threadIdx.x] = in[i];
#else
  tile[threadIdx.x] = i < n ? in[i] : 0.0f;
#endif
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 64; ++k)
    sum += tile[k];
  if (i < n)
    out[i] = sum;
}

int main() {
  int n = 100;
  summed<<<2, 64>>>(on_device(n, 1.0f), on_device(n, 0.0f), n);
  CHECK(cudaDeviceSynchronize());
}
