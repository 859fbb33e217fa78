// A cluster that hands tiles on: in each round a thread writes its word and arrives at the mbarrier of the CTA before its own, all threads wait for their
// CTA's and read a word of the next CTA, and one thread stores the tile by a bulk copy.
#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;

extern "C" __global__ void rounds(int* out, int n) {
    __shared__ alignas(128) int tile[128];
    __shared__ alignas(8) uint64_t full;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned ctas = cluster.num_blocks(), rank = cluster.block_rank();
    unsigned place = (unsigned)__cvta_generic_to_shared(&full), source = (unsigned)__cvta_generic_to_shared(tile);
    int* own = out + blockIdx.x * blockDim.x;
    if (!threadIdx.x) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(place), "r"(blockDim.x) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster.sync();
    int sum = 0;
    for (int i = 0; i < n; ++i) {
        tile[threadIdx.x] = i + sum;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("{ .reg .u32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(place), "r"((rank + ctas - 1) % ctas) : "memory");
        for (unsigned done = 0; !done;)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(place), "r"(i & 1) : "memory");
        sum += cluster.map_shared_rank(tile, (rank + 1) % ctas)[threadIdx.x];
        __syncthreads();
        if (!threadIdx.x)
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::"l"(own), "r"(source) : "memory");
        cluster.sync();
    }
}
