// The handles of cuBLASLt. Its products are not here: a program that calls them does not build, and the audit says so.
#pragma once
#include <cublas_v2.h>
struct cublasLtContext;
typedef cublasLtContext *cublasLtHandle_t;
inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) { return *handle = nullptr, CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
