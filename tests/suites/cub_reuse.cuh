// Included by cub_reuse.cu once for each size.
namespace SIZED(reuse) {

#include "cub_block.cuh"

using Collective = COLLECTIVE;
constexpr int instances = WARP_WIDE ? THREADS / 32 : 1;

template <bool barrier>
__device__ void reuse(Item* data)
{
    __shared__ Collective::Storage storage[instances];
    Items items;
    auto& own = storage[threadIdx.x * instances / THREADS];
    const int first = threadIdx.x * ITEMS;
    for (int i = 0; i < ITEMS; ++i) items[i] = data[first + i];
    Collective::use(own, items, data);
    if (barrier && !WARP_WIDE) __syncthreads();
    if (barrier && WARP_WIDE) __syncwarp();
    Collective::use(own, items, data + THREADS * ITEMS);
    for (int i = 0; i < ITEMS; ++i) data[2 * THREADS * ITEMS + first + i] = items[i];
}

extern "C" __global__ void __launch_bounds__(THREADS) SIZED(with_barrier)(Item* data) { reuse<true>(data); }

extern "C" __global__ void __launch_bounds__(THREADS) SIZED(without_barrier)(Item* data) { reuse<false>(data); }

}  // namespace SIZED(reuse)
