// Names that CUB 3 has removed.
#pragma once
#include <cuda/functional>
#include <cuda/std/functional>
namespace cub {
using Sum = ::cuda::std::plus<>;
using Max = ::cuda::maximum<>;
using Min = ::cuda::minimum<>;
} // namespace cub
