// Types of torch with 16 bits, for kernels that are instantiated with them: on the device they are CUDA's.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace c10 {
using Half = __half;
using BFloat16 = __nv_bfloat16;
} // namespace c10
namespace at {
using c10::BFloat16;
using c10::Half;
} // namespace at
