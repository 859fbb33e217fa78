// Streams, devices and checks of torch's part for CUDA, on a device that has one stream.
#pragma once
#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <cuda_runtime.h>
namespace c10::cuda {
struct CUDAStream {
    operator cudaStream_t() const { return nullptr; }
    cudaStream_t stream() const { return nullptr; }
    void synchronize() const {}
    bool query() const { return true; }
    int device_index() const { return 0; }
};
inline CUDAStream getCurrentCUDAStream(int = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(int = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool = false, int = -1) { return {}; }
inline void setCurrentCUDAStream(CUDAStream) {}
inline int current_device() { return 0; }
inline int device_count() { return 1; }
inline void set_device(int) {}
inline void device_synchronize() {}
struct CUDAGuard {
    template <class... T> explicit CUDAGuard(const T &...) {}
};
struct OptionalCUDAGuard {
    template <class... T> explicit OptionalCUDAGuard(const T &...) {}
};
struct CUDAStreamGuard {
    template <class... T> explicit CUDAStreamGuard(const T &...) {}
};
inline cudaDeviceProp *properties() {
    static cudaDeviceProp found = [] {
        cudaDeviceProp made;
        cudaGetDeviceProperties(&made, 0);
        return made;
    }();
    return &found;
}
} // namespace c10::cuda
namespace at::cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::current_device;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromPool;
using c10::cuda::OptionalCUDAGuard;
inline cudaDeviceProp *getCurrentDeviceProperties() { return c10::cuda::properties(); }
inline cudaDeviceProp *getDeviceProperties(int) { return c10::cuda::properties(); }
} // namespace at::cuda
namespace at {
using c10::cuda::OptionalCUDAGuard;
} // namespace at
#define C10_CUDA_CHECK(expression) \
    do { \
        const cudaError_t consan_error = (expression); \
        TORCH_CHECK(consan_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(consan_error)); \
    } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)
