// Rows of 13 floats are read as float4.
// expect: copied out-of-bounds
#include "harness.h"

#ifdef BUG
constexpr int kRow = 13;
#else
constexpr int kRow = 12;
#endif

__global__ void copied(const float *in, float *out, int row) {
  const float4 *from = reinterpret_cast<const float4 *>(in + threadIdx.x * row);
  float4 value = from[0];
  out[threadIdx.x] = value.x + value.y + value.z + value.w;
}

int main() {
  copied<<<1, 8>>>(on_device(8 * kRow, 1.0f), on_device(8, 0.0f), kRow);
  cudaDeviceSynchronize();
}
