// The last steps of a reduction run in one warp, without __syncwarp between them.
// expect: summed data-race
#include "harness.h"

__device__ void last_steps(float *sums, int t) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    float other = t + step < 32 ? sums[t + step] : 0.0f;
#ifndef BUG
    __syncwarp();
#endif
    sums[t] += other;
#ifndef BUG
    __syncwarp();
#endif
  }
}

__global__ void summed(const float *in, float *out) {
  __shared__ float sums[64];
  int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
  if (t < 32) {
    sums[t] += sums[t + 32];
    __syncwarp();
    last_steps(sums, t);
  }
  if (t == 0)
    *out = sums[0];
}

int main() {
  summed<<<1, 64>>>(on_device(64, 1.0f), on_device(1, 0.0f));
  CHECK(cudaDeviceSynchronize());
}
