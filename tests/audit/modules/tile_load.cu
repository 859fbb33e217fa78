// A tile is read before all threads have loaded their part. A template with a type and a number, by dynamic shared memory.
// expect: reversed<float, 128> data-race
#include "harness.h"

template <typename T, int N> __global__ void __launch_bounds__(N) reversed(T *__restrict__ out, const T *__restrict__ in) {
  extern __shared__ char bytes[];
  T *tile = reinterpret_cast<T *>(bytes);
  tile[threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
#ifndef BUG
  __syncthreads();
#endif
  out[blockIdx.x * N + threadIdx.x] = tile[N - 1 - threadIdx.x];
}

template <typename T> void launch(T *out, const T *in) {
  CHECK(cudaFuncSetAttribute(reversed<T, 128>, cudaFuncAttributeMaxDynamicSharedMemorySize, 128 * sizeof(T)));
  reversed<T, 128><<<dim3(2), dim3(128), 128 * sizeof(T)>>>(out, in);
}

int main() {
  launch(on_device<float>(256), on_device(256, 2.0f));
  CHECK(cudaGetLastError());
}
