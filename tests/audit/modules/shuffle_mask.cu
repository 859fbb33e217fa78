// A shuffle with a full mask in a branch that only four lanes take.
// expect: summed *
#include "harness.h"

__global__ void summed(const float *in, float *out) {
  __shared__ float partial[4], total;
  float value = in[threadIdx.x];
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_down_sync(0xffffffff, value, step);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = value;
  __syncthreads();
#ifdef BUG
  if (threadIdx.x < 4) {
    value = partial[threadIdx.x];
#else
  if (threadIdx.x < 32) {
    value = threadIdx.x < 4 ? partial[threadIdx.x] : 0.0f;
#endif
    for (int step = 2; step > 0; step /= 2)
      value += __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x == 0)
      total = value;
  }
  __syncthreads();
  out[threadIdx.x] = total;
}

int main() {
  summed<<<1, 128>>>(on_device(128, 1.0f), on_device(128, 0.0f));
  CHECK(cudaDeviceSynchronize());
}
