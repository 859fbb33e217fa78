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
inline at::TensorOptions dtype(at::ScalarType type) { return at::dtype(type); }
} // namespace torch
