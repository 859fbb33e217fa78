// CUB BlockReduce in its three algorithms; the temporary storage is reused between them.
#include <cub/block/block_reduce.cuh>

extern "C" __global__ void __launch_bounds__(128) block_reduce(const float* in, float* out, int n)
{
    using Raking = cub::BlockReduce<float, 128, cub::BLOCK_REDUCE_RAKING>;
    using Ordered = cub::BlockReduce<float, 128, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>;
    using Warps = cub::BlockReduce<float, 128, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    __shared__ union {
        Raking::TempStorage raking;
        Ordered::TempStorage ordered;
        Warps::TempStorage warps;
    } storage;

    const int i = blockIdx.x * 128 + threadIdx.x;
    const float value = i < n ? in[i] : 0.0f;
    const float first = Raking(storage.raking).Sum(value);
    __syncthreads();
    const float second = Ordered(storage.ordered).Sum(value * value);
    __syncthreads();
    const float third = Warps(storage.warps).Reduce(value, [](float a, float b) { return a < b ? b : a; });
    if (threadIdx.x == 0) {
        out[blockIdx.x * 3] = first;
        out[blockIdx.x * 3 + 1] = second;
        out[blockIdx.x * 3 + 2] = third;
    }
}
