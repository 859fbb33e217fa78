// CUB BlockRadixSort: 512 keys with values in one CTA.
#include <cub/block/block_radix_sort.cuh>

extern "C" __global__ void __launch_bounds__(128) block_radix_sort(unsigned* keys, int* values)
{
    using Sort = cub::BlockRadixSort<unsigned, 128, 4, int>;
    __shared__ Sort::TempStorage storage;

    unsigned key[4];
    int value[4];
    const int base = blockIdx.x * 512 + threadIdx.x * 4;
    for (int i = 0; i < 4; ++i) {
        key[i] = keys[base + i];
        value[i] = values[base + i];
    }
    Sort(storage).Sort(key, value);
    for (int i = 0; i < 4; ++i) {
        keys[base + i] = key[i];
        values[base + i] = value[i];
    }
}
