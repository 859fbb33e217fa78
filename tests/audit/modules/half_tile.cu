// 32 threads load a tile of 64 elements, and read all of it.
// expect: scaled uninitialized-read
#include "harness.h"

#ifdef BUG
#define STEP 64
#else
#define STEP 32
#endif

__global__ void scaled(const float *in, float *out) {
  __shared__ float tile[64];
  for (int i = threadIdx.x; i < 64; i += STEP)
    tile[i] = in[i];
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += 32)
    out[i] = 2 * tile[63 - i];
}

int main() {
  scaled<<<1, 32>>>(on_device(64, 1.0f), on_device(64, 0.0f));
  CHECK(cudaDeviceSynchronize());
}
