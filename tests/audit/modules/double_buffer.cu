// Two buffers in turn, and one barrier too few.
// expect: summed data-race
#include "harness.h"

struct Shape {
  int rows;
  int columns;
};

__global__ void summed(const float *in, float *out, const Shape shape, float scale = 0.5f) {
  __shared__ float tile[2][64];
  float sum = 0;
  for (int row = 0; row < shape.rows; ++row) {
    tile[row % 2][threadIdx.x] = in[row * shape.columns + threadIdx.x];
#ifdef BUG
    if (row % 2 == 0)
#endif
      __syncthreads();
    sum += scale * tile[row % 2][shape.columns - 1 - threadIdx.x];
  }
  out[threadIdx.x] = sum;
}

int main() {
  Shape shape{5, 64};
  summed<<<1, 64>>>(on_device(320, 1.0f), on_device(64, 0.0f), shape);
  CHECK(cudaDeviceSynchronize());
}
