// Tiles of two warps synchronise, and take a value of one of their threads. Both tiles have their bits in one word, which a plain store has cleared.
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// result: out = x + np.repeat(x[5::64], 64)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ cg::block_tile_memory<128> memory;
    auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
    int t = threadIdx.x;
    tile.sync();
    out[t] = x[t] + tile.shfl(x[t], 5);
}
