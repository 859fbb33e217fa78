// A grid-wide sum in two phases around cooperative groups' grid sync, with a tiled warp reduction inside.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __launch_bounds__(256) cooperative_grid(const float* in, float* partial, float* out, int n)
{
    __shared__ float sums[8];
    auto grid = cg::this_grid();
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    float sum = 0.0f;
    for (long long i = grid.thread_rank(); i < n; i += grid.size()) sum += in[i];
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        float total = 0.0f;
        for (int i = 0; i < 8; ++i) total += sums[i];
        partial[blockIdx.x] = total;
    }
    grid.sync();
    if (grid.thread_rank() == 0) {
        float total = 0.0f;
        for (unsigned i = 0; i < gridDim.x; ++i) total += partial[i];
        *out = total;
    }
}
