// CUB BlockScan: exclusive sum with a running prefix, four items a thread, loads and stores through BlockLoad and BlockStore.
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

struct RunningPrefix {
    int total;
    __device__ int operator()(int aggregate)
    {
        const int before = total;
        total += aggregate;
        return before;
    }
};

extern "C" __global__ void __launch_bounds__(128) block_scan(const int* in, int* out, int n)
{
    using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_TRANSPOSE>;
    using Scan = cub::BlockScan<int, 128>;
    __shared__ union {
        Load::TempStorage load;
        Store::TempStorage store;
        Scan::TempStorage scan;
    } storage;

    RunningPrefix prefix{0};
    for (int base = 0; base < n; base += 512) {
        int items[4];
        Load(storage.load).Load(in + base, items, n - base, 0);
        __syncthreads();
        Scan(storage.scan).ExclusiveSum(items, items, prefix);
        __syncthreads();
        Store(storage.store).Store(out + base, items, n - base);
        __syncthreads();
    }
}
