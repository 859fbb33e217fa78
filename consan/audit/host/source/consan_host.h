// Included before each source of the host: the launch of a kernel, and what only nvcc declares.
#pragma once
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP // thrust's algorithms run on the host, on memory of the device
#include <cuda_runtime.h>
#include <math.h>
#include <cstdint>
#include <cstdio>
#include <stdlib.h>
#include <cstring>
#include <algorithm>
#ifdef CONSAN_PROGRAM // what programs take from headers of CUDA's toolkit, compiled once for all
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cassert>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>
#include "consan_before13.h"
static std::ios_base::Init consan_streams;  // a library that was loaded before may have streams of its own, which nobody has initialised
#endif

extern "C" {
void consan_shape(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
void consan_hand_over(const void *stub, int count, const void *const *values, const size_t *sizes);
}

namespace consan {
// The configuration of the call that follows.
inline void shape(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr) { consan_shape(grid, block, shared, stream); }

// The body of a kernel on the host. The place in the kernel from where it is called names the kernel.
template <class... T> __attribute__((noinline)) void hand_over(const T &...arguments) {
    const void *values[] = {static_cast<const void *>(&arguments)..., nullptr};
    const size_t sizes[] = {sizeof(T)..., 0};
    consan_hand_over(__builtin_return_address(0), int(sizeof...(T)), values, sizes);
}

// In place of the body of a function of the host that does not compile.
[[noreturn]] inline void missing(const char *function) {
  std::fprintf(stderr, "consan: %s does not compile, and was called\n", function);
  std::exit(71);
}
} // namespace consan

// Words of headers that the host does without: programs give them other names, or take all of theirs.
namespace cooperative_groups {}
namespace cub {}
namespace nvcuda::wmma {}

using std::isinf;
using std::isnan;
using std::max;
using std::min;
using std::signbit;

template <class T> cudaError_t cudaFuncSetAttribute(T *kernel, cudaFuncAttribute attribute, int value) {
    return ::cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}
template <class T> cudaError_t cudaFuncSetCacheConfig(T *kernel, cudaFuncCache config) {
    return ::cudaFuncSetCacheConfig(reinterpret_cast<const void *>(kernel), config);
}
template <class T> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, T *kernel) {
    return ::cudaFuncGetAttributes(attributes, reinterpret_cast<const void *>(kernel));
}

template <class T>
cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    return ::cudaMemcpyToSymbol(static_cast<const void *>(&symbol), from, bytes, offset, kind);
}
template <class T> cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    return ::cudaMemcpyFromSymbol(to, static_cast<const void *>(&symbol), bytes, offset, kind);
}
template <class T> cudaError_t cudaGetSymbolAddress(void **address, const T &symbol) {
    return ::cudaGetSymbolAddress(address, static_cast<const void *>(&symbol));
}
template <class T> cudaError_t cudaGetSymbolSize(size_t *bytes, const T &symbol) { return ::cudaGetSymbolSize(bytes, static_cast<const void *>(&symbol)); }
