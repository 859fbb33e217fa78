// A program of the CUDA runtime. Built with -DRACY it leaves out a barrier.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#include "runtime_status.cuh"

struct Scale {
    short by;
    double offset;
};

__constant__ int first = 3;
__device__ int total;

template <int N> __global__ void reverse(int *out, const int *in, Scale scale) {
    extern __shared__ int tile[];
    int thread = threadIdx.x + blockIdx.y * 0;
    tile[thread] = in[thread];
#ifndef RACY
    __syncthreads();
#endif
    out[thread] = tile[N - 1 - thread] * scale.by + int(scale.offset) + first;  // reader
    if (thread < 32) atomicAdd(&total, 1);
}

int main() {
    constexpr int N = 128, BYTES = N * sizeof(int), MUCH = 100 << 10;
    int given[N], found[N], *in, *out, seven = 7, counted = 0;
    cudaDeviceProp properties;
    cudaFuncAttributes attributes;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    float milliseconds = -1;
    for (int i = 0; i < N; ++i) given[i] = i;
    OK(cudaSetDevice(0));
    OK(cudaGetDeviceProperties(&properties, 0));
    if (properties.major != 9 || properties.warpSize != 32 || properties.maxGridSize[2] != 65535 || !properties.clusterLaunch) return 2;
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&begin));
    OK(cudaEventCreate(&end));
    OK(cudaMalloc(&in, BYTES));
    OK(cudaMalloc(&out, BYTES));
    OK(cudaMemcpyAsync(in, given, BYTES, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyToSymbol(first, &seven, sizeof seven));
    OK(cudaFuncSetAttribute(reverse<N>, cudaFuncAttributeMaxDynamicSharedMemorySize, MUCH));
    OK(cudaFuncGetAttributes(&attributes, reverse<N>));
    if (attributes.maxDynamicSharedSizeBytes != MUCH) return 3;
    OK(cudaDeviceSynchronize());
    OK(cudaEventRecord(begin, stream));
    reverse<N><<<dim3(1, 1, 1), N, MUCH, stream>>>(out, in, Scale{2, 1.0});
    OK(cudaGetLastError());
    OK(cudaEventRecord(end, stream));
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&milliseconds, begin, end));
    OK(cudaMemcpy(found, out, BYTES, cudaMemcpyDeviceToHost));
    OK(cudaMemcpyFromSymbol(&counted, total, sizeof counted));
    if (milliseconds < 0 || counted != 32) return 4;
#ifndef RACY
    for (int i = 0; i < N; ++i)
        if (found[i] != (N - 1 - i) * 2 + 1 + 7) return 5;
#endif
    reverse<N><<<1, 4096>>>(out, in, Scale{});
    if (cudaPeekAtLastError() != cudaErrorInvalidValue || cudaGetLastError() != cudaErrorInvalidValue || cudaGetLastError() != cudaSuccess) return 6;
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(in));
    OK(cudaFree(out));
    std::puts("right");
    return 0;
}
