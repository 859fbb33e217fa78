// Written by a program: the sum of each row.
#include <cstdio>
#include <vector>

template <int THREADS> __global__ void row_sum(const float *in, float *out, int columns) {
  __shared__ float partial[THREADS];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += THREADS)
    sum += in[blockIdx.x * columns + i];
  partial[threadIdx.x] = sum;
  for (int step = THREADS / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step)
      partial[threadIdx.x] += partial[threadIdx.x + step];
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = partial[0];
}

int main() {
  int rows = 4, columns = 300;
  std::vector<float> host(rows * columns, 1.0f), sums(rows);
  float *in, *out;
  cudaMalloc(&in, host.size() * sizeof(float));
  cudaMalloc(&out, rows * sizeof(float));
  cudaMemcpy(in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
  row_sum<128><<<rows, 128>>>(in, out, columns);
  cudaMemcpy(sums.data(), out, rows * sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%g\n", sums[3]);
  return sums[3] == columns ? 0 : 1;
}
