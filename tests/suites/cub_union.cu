// Load, work and store through one union, as CUB's examples do; bit 0 of BARRIERS is the barrier after the load, bit 1 the one after the work.
#include "cub_block.cuh"

template <typename Loads, typename Works, typename Stores, int barriers>
__device__ void through_union(Item* data)
{
    __shared__ union {
        typename Loads::Storage load;
        typename Works::Storage work;
        typename Stores::Storage store;
    } storage;
    Items items;
    Loads::use(storage.load, items, data);
    if (barriers & 1) __syncthreads();
    Works::use(storage.work, items, data);
    if (barriers & 2) __syncthreads();
    Stores::use(storage.store, items, data + THREADS * ITEMS);
}

using Loads = Load<cub::BLOCK_LOAD_TRANSPOSE>;
using Stores = Store<cub::BLOCK_STORE_TRANSPOSE>;

extern "C" __global__ void __launch_bounds__(THREADS) with_barrier(Item* data) { through_union<Loads, COLLECTIVE, Stores, 3>(data); }

extern "C" __global__ void __launch_bounds__(THREADS) first_barrier(Item* data) { through_union<Loads, COLLECTIVE, Stores, 1>(data); }

extern "C" __global__ void __launch_bounds__(THREADS) second_barrier(Item* data) { through_union<Loads, COLLECTIVE, Stores, 2>(data); }

extern "C" __global__ void __launch_bounds__(THREADS) without_barrier(Item* data) { through_union<Loads, COLLECTIVE, Stores, 0>(data); }
