// Tiles of two warps exchange values through shared memory. Their barriers and what they hand on lie in the memory that is reserved for cooperative
// groups. The racy twin does not synchronise the tile.
// launch: grid=1 block=128
// arg: x f32[512]=arange
// arg: out f32[128]=zeros
// expect: data-race @write @read severity=error
// result: out = (x.reshape(4, 2, 64)[:, :, ::-1].sum(axis=0) + x.reshape(4, 2, 64).sum(axis=0)[:, 58:59]).reshape(128)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ cg::block_tile_memory<128> memory;
    __shared__ float row[2][64];
    auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
    int t = threadIdx.x, rank = tile.thread_rank(), number = tile.meta_group_rank();
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < 4; k++) {
        row[number][rank] = x[k * 128 + t];  /*@write*/
#ifndef RACY
        tile.sync();
#endif
        sum += row[number][63 - rank];  /*@read*/
        tile.sync();
    }
    out[t] = sum + tile.shfl(sum, 5);
}
