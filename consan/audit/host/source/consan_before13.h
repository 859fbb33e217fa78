// Names that CUDA 13 has removed or changed, for programs of earlier versions.
#pragma once
#include <cuda_runtime.h>

struct consan_device_properties : cudaDeviceProp {
    int clockRate = 1000000, memoryClockRate = 1000000, deviceOverlap = 1, computeMode = 0, kernelExecTimeoutEnabled = 0;
    int singleToDoublePrecisionPerfRatio = 2, cooperativeMultiDeviceLaunch = 0, maxTexture1DLinear = 0;
};
inline cudaError_t cudaGetDeviceProperties(consan_device_properties *properties, int device) {
    *properties = {};
    return ::cudaGetDeviceProperties(static_cast<cudaDeviceProp *>(properties), device);
}
#define cudaDeviceProp consan_device_properties

inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
inline cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
inline cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) { return cudaDeviceSetCacheConfig(config); }
inline cudaError_t cudaMemPrefetchAsync(const void *, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaMemAdvise(const void *, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
