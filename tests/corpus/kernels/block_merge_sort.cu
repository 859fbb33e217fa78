// CUB BlockMergeSort: 512 keys in one CTA, with a comparison that is not the natural one.
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_store.cuh>

struct Descending {
    __device__ bool operator()(const double& a, const double& b) const { return a > b; }
};

extern "C" __global__ void __launch_bounds__(128) block_merge_sort(double* keys, int n)
{
    using Load = cub::BlockLoad<double, 128, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<double, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    using Sort = cub::BlockMergeSort<double, 128, 4>;
    __shared__ union {
        Load::TempStorage load;
        Store::TempStorage store;
        Sort::TempStorage sort;
    } storage;

    double key[4];
    const int base = blockIdx.x * 512, left = min(n - base, 512);
    Load(storage.load).Load(keys + base, key, left, 0.0);
    __syncthreads();
    Sort(storage.sort).StableSort(key, Descending{}, left, -1e300);
    __syncthreads();
    Store(storage.store).Store(keys + base, key, left);
}
