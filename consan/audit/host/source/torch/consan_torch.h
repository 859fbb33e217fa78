// Compiled once for all extensions.
#include <consan_host.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>
