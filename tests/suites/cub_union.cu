// Load, work (COLLECTIVE) and store through one union, as CUB's examples do, with some of the two barriers between them.
#include "cub_headers.cuh"

#define THREADS 128
#define ITEMS 4
#include "cub_block.cuh"

template <bool after_load, bool after_work>
__device__ void through_union(Item* data)
{
    using Loads = Load<cub::BLOCK_LOAD_TRANSPOSE>;
    using Works = COLLECTIVE;
    using Stores = Store<cub::BLOCK_STORE_TRANSPOSE>;
    __shared__ union {
        Loads::Storage load;
        Works::Storage work;
        Stores::Storage store;
    } storage;
    Items items = {};
    Loads::use(storage.load, items, data);
    if (after_load) __syncthreads();
    Works::use(storage.work, items, data);
    if (after_work) __syncthreads();
    Stores::use(storage.store, items, data + THREADS * ITEMS);
}

extern "C" __global__ void __launch_bounds__(THREADS) with_barrier(Item* data) { through_union<true, true>(data); }

extern "C" __global__ void __launch_bounds__(THREADS) only_after_load(Item* data) { through_union<true, false>(data); }

extern "C" __global__ void __launch_bounds__(THREADS) only_after_work(Item* data) { through_union<false, true>(data); }

extern "C" __global__ void __launch_bounds__(THREADS) without_barrier(Item* data) { through_union<false, false>(data); }
