// The launch gives less dynamic shared memory than the kernel uses.
// expect: rotated *
#include "harness.h"

#ifdef BUG
constexpr int kBytes = 64 * 4;
#else
constexpr int kBytes = 65 * 4;
#endif

__global__ void rotated(const int *in, int *out) {
  extern __shared__ int tile[];
  tile[threadIdx.x + 1] = in[threadIdx.x];
  if (threadIdx.x == 0)
    tile[0] = 0;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

int main() {
  rotated<<<1, 64, kBytes>>>(on_device(64, 1), on_device(64, 0));
  cudaDeviceSynchronize();
}
