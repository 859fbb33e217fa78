// The reductions of NVIDIA's "reduction" sample and its descendants: the last warp unrolled, cooperative groups tiles, shuffles.
// launch: grid=2 block=128 arch=sm_80
// arg: x f32[2,256]=random
// arg: out f32[2]=zeros
// result: out = x.sum(1)
// bug 1: data-race warn the last warp without volatile and __syncwarp
// bug 2: data-race no __syncthreads in the tree
// bug 3: data-race no barrier behind the first store
// bug 4: clean volatile pointer, with __syncwarp between
// bug 5: data-race warn volatile pointer, no __syncwarp
// bug 6: clean cg tile of 32: tile.sync between read and write
// bug 7: data-race warn tile.sync only behind the write
// bug 8: data-race warps store their sums; thread 0 reads with no barrier
// bug 9: data-race|barrier-misuse warn tiles of 16 sync in place of 32
// bug 10: clean reduce by tiles, barrier, final tile
// bug 11: barrier-misuse|data-race __syncwarp(0xffff) by the whole warp
// bug 12: data-race barrier in the tree is one level too late: s > 32 left without
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __launch_bounds__(128) kernel(const float* x, float* out) {
    __shared__ float s[128];
    const unsigned t = threadIdx.x;
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    const float* in = x + blockIdx.x * 256;
    s[t] = in[t] + in[t + 128];
#if BUG != 3
    __syncthreads();
#endif
#if BUG == 8 || BUG == 10
    float v = cg::reduce(tile, s[t], cg::plus<float>());
    __syncthreads();
    if (tile.thread_rank() == 0) s[t / 32] = v;
#if BUG == 10
    __syncthreads();
#endif
    if (t == 0) out[blockIdx.x] = s[0] + s[1] + s[2] + s[3];
    return;
#endif
    if (t < 64) s[t] += s[t + 64];
#if BUG != 2 && BUG != 12
    __syncthreads();
#endif
    if (t < 32) {
        s[t] += s[t + 32];
#if BUG == 1
        for (int d = 16; d; d /= 2) s[t] += s[t + d];
#elif BUG == 4 || BUG == 5
        volatile float* p = s;
#if BUG == 4
        __syncwarp();
#endif
        for (int d = 16; d; d /= 2) {
            float v = p[t] + p[t + d];
#if BUG == 4
            __syncwarp();
#endif
            p[t] = v;
#if BUG == 4
            __syncwarp();
#endif
        }
#elif BUG == 9
        auto half = cg::tiled_partition<16>(tile);
        half.sync();
        for (int d = 16; d; d /= 2) {
            float v = s[t] + s[t + d];
            half.sync();
            s[t] = v;
            half.sync();
        }
#elif BUG == 11
        __syncwarp();
        for (int d = 16; d; d /= 2) {
            float v = s[t] + s[t + d];
            __syncwarp(0xffff);
            s[t] = v;
            __syncwarp(0xffff);
        }
#else
        tile.sync();
        for (int d = 16; d; d /= 2) {
            float v = s[t] + s[t + d];
#if BUG != 7
            tile.sync();
#endif
            s[t] = v;
            tile.sync();
        }
#endif
        if (t == 0) out[blockIdx.x] = s[0];
    }
}
