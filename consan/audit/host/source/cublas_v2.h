// The part of cuBLAS that programs around kernels call, in single and double precision: products, and functions of vectors. They are computed
// on the host, in memory that both share; so results and factors may be anywhere.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <library_types.h>
#include <math.h>
#include <cstddef>
#include <cstdint>

struct cublasContext;
typedef cublasContext *cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_SUPPORTED = 15 } cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_PEDANTIC_MATH = 2, CUBLAS_TF32_TENSOR_OP_MATH = 3 } cublasMath_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;
typedef enum {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  CUBLAS_COMPUTE_64F = 70
} cublasComputeType_t;

inline cublasStatus_t cublasCreate(cublasHandle_t *handle) { return *handle = nullptr, CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void *from, int from_rows, void *to, int to_rows) {
  const size_t width = size_t(rows) * size;
  return cublasStatus_t(cudaMemcpy2D(to, size_t(to_rows) * size, from, size_t(from_rows) * size, width, columns, cudaMemcpyDefault));
}
inline cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void *from, int from_rows, void *to, int to_rows) {
  return cublasSetMatrix(rows, columns, size, from, from_rows, to, to_rows);
}
// A vector is a row of a matrix.
inline cublasStatus_t cublasSetVector(int count, int size, const void *from, int from_step, void *to, int to_step) {
  return cublasSetMatrix(1, count, size, from, from_step, to, to_step);
}
inline cublasStatus_t cublasGetVector(int count, int size, const void *from, int from_step, void *to, int to_step) {
  return cublasSetMatrix(1, count, size, from, from_step, to, to_step);
}
inline const char *cublasGetStatusString(cublasStatus_t) { return "a status of cuBLAS"; }

namespace consan {
template <class T>
cublasStatus_t gemm(cublasOperation_t first, cublasOperation_t second, int m, int n, int k, const T *alpha, const T *a, int lda, const T *b,
                    int ldb, const T *beta, T *c, int ldc) {
  for (int column = 0; column < n; ++column)
    for (int row = 0; row < m; ++row) {
      T sum = 0;
      for (int i = 0; i < k; ++i)
        sum += a[first == CUBLAS_OP_N ? row + size_t(i) * lda : i + size_t(row) * lda] *
               b[second == CUBLAS_OP_N ? i + size_t(column) * ldb : column + size_t(i) * ldb];
      T &into = c[row + size_t(column) * ldc];
      into = *alpha * sum + (*beta == T(0) ? T(0) : *beta * into);
    }
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t gemv(cublasOperation_t operation, int m, int n, const T *alpha, const T *a, int lda, const T *x, int x_step, const T *beta,
                    T *y, int y_step) {
  const bool plain = operation == CUBLAS_OP_N;
  for (int i = 0; i < (plain ? m : n); ++i) {
    T sum = 0;
    for (int k = 0; k < (plain ? n : m); ++k)
      sum += a[plain ? i + size_t(k) * lda : k + size_t(i) * lda] * x[size_t(k) * x_step];
    T &into = y[size_t(i) * y_step];
    into = *alpha * sum + (*beta == T(0) ? T(0) : *beta * into);
  }
  return CUBLAS_STATUS_SUCCESS;
}

template <class T, class F> cublasStatus_t each(int n, F function) {
  for (int i = 0; i < n; ++i)
    function(size_t(i));
  return CUBLAS_STATUS_SUCCESS;
}

template <class T, class F> cublasStatus_t summed(int n, T *result, F function) {
  T sum = 0;
  for (int i = 0; i < n; ++i)
    sum += function(size_t(i));
  return *result = sum, CUBLAS_STATUS_SUCCESS;
}
} // namespace consan

#define CONSAN_GEMM(letter, T)                                                                                                             \
  inline cublasStatus_t cublas##letter##gemm(cublasHandle_t, cublasOperation_t first, cublasOperation_t second, int m, int n, int k,       \
                                             const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) {     \
    return consan::gemm(first, second, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                                      \
  }                                                                                                                                        \
  inline cublasStatus_t cublas##letter##gemmStridedBatched(                                                                                \
      cublasHandle_t, cublasOperation_t first, cublasOperation_t second, int m, int n, int k, const T *alpha, const T *a, int lda,         \
      long long a_step, const T *b, int ldb, long long b_step, const T *beta, T *c, int ldc, long long c_step, int batches) {              \
    for (int batch = 0; batch < batches; ++batch)                                                                                          \
      consan::gemm(first, second, m, n, k, alpha, a + batch * a_step, lda, b + batch * b_step, ldb, beta, c + batch * c_step, ldc);        \
    return CUBLAS_STATUS_SUCCESS;                                                                                                          \
  }
CONSAN_GEMM(S, float)
CONSAN_GEMM(D, double)
#ifdef __CUDA_FP16_TYPES_EXIST__
CONSAN_GEMM(H, __half)
#endif
#undef CONSAN_GEMM

#define CONSAN_VECTORS(letter, T)                                                                                                          \
  inline cublasStatus_t cublas##letter##gemv(cublasHandle_t, cublasOperation_t operation, int m, int n, const T *alpha, const T *a,        \
                                             int lda, const T *x, int x_step, const T *beta, T *y, int y_step) {                           \
    return consan::gemv(operation, m, n, alpha, a, lda, x, x_step, beta, y, y_step);                                                       \
  }                                                                                                                                        \
  inline cublasStatus_t cublas##letter##axpy(cublasHandle_t, int n, const T *alpha, const T *x, int x_step, T *y, int y_step) {            \
    return consan::each<T>(n, [=](size_t i) { y[i * y_step] += *alpha * x[i * x_step]; });                                                 \
  }                                                                                                                                        \
  inline cublasStatus_t cublas##letter##scal(cublasHandle_t, int n, const T *alpha, T *x, int step) {                                      \
    return consan::each<T>(n, [=](size_t i) { x[i * step] *= *alpha; });                                                                   \
  }                                                                                                                                        \
  inline cublasStatus_t cublas##letter##copy(cublasHandle_t, int n, const T *x, int x_step, T *y, int y_step) {                            \
    return consan::each<T>(n, [=](size_t i) { y[i * y_step] = x[i * x_step]; });                                                           \
  }                                                                                                                                        \
  inline cublasStatus_t cublas##letter##dot(cublasHandle_t, int n, const T *x, int x_step, const T *y, int y_step, T *result) {            \
    return consan::summed(n, result, [=](size_t i) { return x[i * x_step] * y[i * y_step]; });                                             \
  }                                                                                                                                        \
  inline cublasStatus_t cublas##letter##asum(cublasHandle_t, int n, const T *x, int step, T *result) {                                     \
    return consan::summed(n, result, [=](size_t i) { return x[i * step] < 0 ? -x[i * step] : x[i * step]; });                              \
  }                                                                                                                                        \
  inline cublasStatus_t cublas##letter##nrm2(cublasHandle_t, int n, const T *x, int step, T *result) {                                     \
    consan::summed(n, result, [=](size_t i) { return x[i * step] * x[i * step]; });                                                        \
    return *result = sqrt(*result), CUBLAS_STATUS_SUCCESS;                                                                                 \
  }
CONSAN_VECTORS(S, float)
CONSAN_VECTORS(D, double)
#undef CONSAN_VECTORS

// For other types, only the single precision form is computed.
inline cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t first, cublasOperation_t second, int m, int n, int k,
                                   const void *alpha, const void *a, cudaDataType a_type, int lda, const void *b, cudaDataType b_type,
                                   int ldb, const void *beta, void *c, cudaDataType c_type, int ldc, cublasComputeType_t,
                                   cublasGemmAlgo_t) {
  if (a_type != CUDA_R_32F || b_type != CUDA_R_32F || c_type != CUDA_R_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return consan::gemm(first, second, m, n, k, static_cast<const float *>(alpha), static_cast<const float *>(a), lda,
                      static_cast<const float *>(b), ldb, static_cast<const float *>(beta), static_cast<float *>(c), ldc);
}
