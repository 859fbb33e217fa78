// Histogram over a cluster with cooperative groups: bins are split between the CTAs, map_shared_rank and atomics.
// launch: grid=4 block=128 arch=sm_90
// arg: x u32[4,256]=random
// arg: out u32[2,8]=zeros
// result: out = np.stack([np.bincount(h.ravel().astype(int), minlength=8) for h in x.reshape(2, 512)]).astype(np.uint32)
// bug 1: lifetime|uninitialized-read|data-race no cluster.sync behind the zeroing: __syncthreads
// bug 2: lifetime|data-race no cluster.sync behind the counting: __syncthreads
// bug 3: scope|data-race red of .cta scope
// bug 4: data-race plain increments
// bug 5: data-race|lifetime the other CTA's bins are read, with no cluster.sync at the end
// bug 6: clean the same with cluster.sync at the end
// bug 7: data-race barrier_arrive without barrier_wait behind the counting
// bug 8: clean split arrive and wait
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128) kernel(const unsigned* x, unsigned* out) {
    __shared__ unsigned bins[4];
    auto cluster = cg::this_cluster();
    const unsigned t = threadIdx.x, rank = cluster.block_rank();
    if (t < 4) bins[t] = 0;
#if BUG == 1
    __syncthreads();
#else
    cluster.sync();
#endif
    for (unsigned i = t; i < 256; i += 128) {
        unsigned bin = x[blockIdx.x * 256 + i];
        unsigned* there = cluster.map_shared_rank(bins, bin / 4) + bin % 4;
#if BUG == 3
        unsigned reach;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(reach) : "r"((unsigned)__cvta_generic_to_shared(bins + bin % 4)), "r"(bin / 4));
        asm volatile("red.relaxed.cta.shared::cluster.add.u32 [%0], 1;" ::"r"(reach) : "memory");
#elif BUG == 4
        *there += 1;
#else
        atomicAdd(there, 1);
#endif
    }
#if BUG == 2
    __syncthreads();
#elif BUG == 7
    cluster.barrier_arrive();
#elif BUG == 8
    cluster.barrier_arrive();
    cluster.barrier_wait();
#else
    cluster.sync();
#endif
#if BUG == 5 || BUG == 6
    if (t < 4) out[blockIdx.x / 2 * 8 + (rank ^ 1) * 4 + t] = cluster.map_shared_rank(bins, rank ^ 1)[t];
#else
    if (t < 4) out[blockIdx.x / 2 * 8 + rank * 4 + t] = bins[t];
#endif
#if BUG == 6
    cluster.sync();
#elif BUG == 7
    cluster.barrier_wait();
#endif
}
