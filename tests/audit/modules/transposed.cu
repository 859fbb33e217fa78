// The second tile overwrites the first before all have read it. A launch in a macro, and a helper for host and device.
// expect: transposed data-race
#include "harness.h"
#define TILE 16
#define LAUNCH(kernel, grid, ...) kernel<<<grid, dim3(TILE, TILE)>>>(__VA_ARGS__)

template <class T> __host__ __device__ T ceil_div(T a, T b) { return (a + b - 1) / b; }

__global__ void transposed(const float *in, float *out, int n) {
  __shared__ float tile[TILE][TILE + 1];
  for (int part = 0; part < ceil_div(n, TILE); ++part) {
    int x = part * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    out[(part * TILE + threadIdx.y) * n + blockIdx.x * TILE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
#ifndef BUG
    __syncthreads();
#endif
  }
}

int main() {
  int n = 32;
  LAUNCH(transposed, ceil_div(n, TILE), on_device(n * n, 1.0f), on_device(n * n, 0.0f), n);
  CHECK(cudaDeviceSynchronize());
}
