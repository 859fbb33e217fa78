// Exchanges within warps: __syncwarp masks, coalesced groups, divergent halves, elected lanes.
// launch: grid=1 block=64 arch=sm_80
// arg: x u32[64]=random
// arg: out u32[64]=zeros
// bug 1: barrier-misuse|deadlock the halves name the whole warp one of them only
// bug 2: barrier-misuse masks lack the lanes that execute
// bug 3: data-race warn masks of the halves, data of the other half
// bug 4: clean coalesced groups sync
// bug 5: data-race warn coalesced threads, no sync
// bug 6: barrier-misuse __syncthreads in a divergent branch
// bug 7: data-race warn elected lane writes, others read without __syncwarp
// bug 8: clean with __syncwarp
// bug 9: barrier-misuse|deadlock shfl with the full mask in a branch of half the warp
// bug 10: data-race elected lane of warp 0 writes, warp 1 reads behind __syncwarp
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __launch_bounds__(64) kernel(const unsigned* x, unsigned* out) {
    __shared__ unsigned s[64], word;
    const unsigned t = threadIdx.x, lane = t % 32, base = t - lane;
    unsigned v = x[t], r = 0;
#if BUG == 4 || BUG == 5
    if (v & 1) {
        auto g = cg::coalesced_threads();
        s[base + g.thread_rank()] = v;
#if BUG == 4
        g.sync();
#endif
        r = s[base + g.size() - 1 - g.thread_rank()];
    }
#elif BUG == 6
    s[t] = v;
    if (lane < 16) {
        __syncthreads();
        r = s[base + 15 - lane];
    } else {
        r = 1;
    }
    if (lane >= 16) __syncthreads();
#elif BUG == 7 || BUG == 8
    if (lane == 5 && base == 0) word = v;
#if BUG == 8
    __syncwarp();
#endif
    if (base == 0) r = word;
#elif BUG == 9
    s[t] = v;
    __syncwarp();
    if (lane < 16) r = __shfl_sync(0xffffffff, v, 3);
    else r = s[t] + 1;
    out[t] = r;
    return;
#elif BUG == 10
    if (t == 0) word = v;
    __syncwarp();
    r = word;
#else
    s[t] = v;
    if (lane < 16) {
#if BUG == 1
        __syncwarp();
#elif BUG == 2
        __syncwarp(0xffff0000);
#else
        __syncwarp(0x0000ffff);
#endif
        r = s[base + (BUG == 3 ? 31 - lane : 15 - lane)];
    } else {
        __syncwarp(0xffff0000);
        r = s[base + (BUG == 3 ? 31 - lane : 47 - lane)];
    }
#endif
    out[t] = r;
}
