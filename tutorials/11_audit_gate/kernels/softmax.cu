// Written by a program: the softmax of each row.
#include <cfloat>
#include <cmath>
#include <vector>

__global__ void softmax(const float *in, float *out, int columns) {
  __shared__ float shared_data[64];
  const float *row = in + blockIdx.x * columns;
  int t = threadIdx.x;

  float value = -FLT_MAX;
  for (int i = t; i < columns; i += blockDim.x)
    value = fmaxf(value, row[i]);
  shared_data[t] = value;
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    __syncthreads();
    if (t < step)
      shared_data[t] = fmaxf(shared_data[t], shared_data[t + step]);
  }
  __syncthreads();
  float largest = shared_data[0];

  float sum = 0.0f;
  for (int i = t; i < columns; i += blockDim.x)
    sum += expf(row[i] - largest);
  shared_data[t] = sum;
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    __syncthreads();
    if (t < step)
      shared_data[t] += shared_data[t + step];
  }
  __syncthreads();
  for (int i = t; i < columns; i += blockDim.x)
    out[blockIdx.x * columns + i] = expf(row[i] - largest) / shared_data[0];
}

int main() {
  int rows = 2, columns = 100;
  std::vector<float> host(rows * columns, 1.0f);
  float *in, *out;
  cudaMalloc(&in, host.size() * sizeof(float));
  cudaMalloc(&out, host.size() * sizeof(float));
  cudaMemcpy(in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
  softmax<<<rows, 64>>>(in, out, columns);
  cudaMemcpy(host.data(), out, host.size() * sizeof(float), cudaMemcpyDeviceToHost);
  return std::fabs(host[0] - 1.0f / columns) < 1e-5f ? 0 : 1;
}
