// As c10/cuda/CUDAStream.h, and cuBLAS.
#pragma once
#include <c10/cuda/CUDAStream.h>
#include <cublas_v2.h>
namespace at::cuda {
inline cublasHandle_t getCurrentCUDABlasHandle() { return {}; }
} // namespace at::cuda
