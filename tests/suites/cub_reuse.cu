// Two uses of one collective on the same temporary storage, with and without the barrier that CUB asks for between them.
#include "cub_block.cuh"

template <typename Collective, int instances, bool barrier>
__device__ void reuse(Item* data)
{
    __shared__ typename Collective::Storage storage[instances];
    Items items;
    auto& own = storage[threadIdx.x * instances / THREADS];
    const int first = threadIdx.x * ITEMS;
    for (int i = 0; i < ITEMS; ++i) items[i] = data[first + i];
    Collective::use(own, items, data);
    if (barrier && instances == 1) __syncthreads();
    if (barrier && instances > 1) __syncwarp();
    Collective::use(own, items, data + THREADS * ITEMS);
    for (int i = 0; i < ITEMS; ++i) data[2 * THREADS * ITEMS + first + i] = items[i];
}

extern "C" __global__ void __launch_bounds__(THREADS) once(Item* data)
{
    using Collective = COLLECTIVE;
    __shared__ Collective::Storage storage[INSTANCES];
    Items items;
    const int first = threadIdx.x * ITEMS;
    for (int i = 0; i < ITEMS; ++i) items[i] = data[first + i];
    Collective::use(storage[threadIdx.x * INSTANCES / THREADS], items, data);
    for (int i = 0; i < ITEMS; ++i) data[2 * THREADS * ITEMS + first + i] = items[i];
}

extern "C" __global__ void __launch_bounds__(THREADS) with_barrier(Item* data) { reuse<COLLECTIVE, INSTANCES, true>(data); }

extern "C" __global__ void __launch_bounds__(THREADS) without_barrier(Item* data) { reuse<COLLECTIVE, INSTANCES, false>(data); }
