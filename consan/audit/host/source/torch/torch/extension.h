// The part of torch's header that extensions with kernels use: the tensor library, under the names of torch. The whole takes ten times as long.
#pragma once
#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <consan_pybind.h>
namespace torch {
using namespace at;
using Dtype = at::ScalarType;
constexpr auto kF32 = at::kFloat;
constexpr auto kFloat32 = at::kFloat;
constexpr auto kFloat64 = at::kDouble;
constexpr auto kFloat16 = at::kHalf;
constexpr auto kInt8 = at::kChar;
constexpr auto kUInt8 = at::kByte;
constexpr auto kInt16 = at::kShort;
constexpr auto kInt32 = at::kInt;
constexpr auto kInt64 = at::kLong;
using std::nullopt;
using std::optional;
// A tensor over memory of the host that moves to the device is a copy there. Here both have one memory.
inline at::Tensor consan_on_device(const void *data, at::Tensor made) {
    cudaPointerAttributes found;
    cudaPointerGetAttributes(&found, data);
    return found.type == cudaMemoryTypeDevice ? made : made.clone();
}
inline at::Tensor from_blob(void *data, at::IntArrayRef sizes, const at::TensorOptions &options = {}) {
    return consan_on_device(data, at::from_blob(data, sizes, options));
}
inline at::Tensor from_blob(void *data, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions &options = {}) {
    return consan_on_device(data, at::from_blob(data, sizes, strides, options));
}
inline at::TensorOptions dtype(at::ScalarType type) { return at::dtype(type); }
} // namespace torch
