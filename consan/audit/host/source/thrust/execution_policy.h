// thrust's own, and the policies that name CUDA: what they run is run on the host, as all of thrust is here.
#pragma once
#include_next <thrust/execution_policy.h>

namespace thrust::cuda {
struct on_host : std::remove_const_t<decltype(thrust::device)> {
    auto on(cudaStream_t) const { return thrust::device; }
    template <class Allocator> auto operator()(Allocator &&) const { return thrust::device; }
};
inline const on_host par, par_nosync;
} // namespace thrust::cuda
