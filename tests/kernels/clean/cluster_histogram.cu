// A histogram whose bins are spread over the CTAs of a cluster: atomics on each other's shared memory (CUDA guide, "Distributed Shared Memory").
// launch: grid=4 block=64 arch=sm_90
// arg: x u32[1024]=random
// arg: out u32[2,8]=zeros
// result: out = np.stack([np.bincount(x.reshape(2, 2, 256)[c].ravel(), minlength=8) for c in range(2)])
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2) kernel(const unsigned* x, unsigned* out) {
    __shared__ unsigned bins[4];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned t = threadIdx.x, rank = cluster.block_rank();
    if (t < 4) bins[t] = 0;
    cluster.sync();
    for (unsigned i = t; i < 256; i += 64) {
        unsigned value = x[blockIdx.x * 256 + i];
        atomicAdd(cluster.map_shared_rank(bins, value / 4) + value % 4, 1u);
    }
    cluster.sync();
    if (t < 4) out[blockIdx.x / 2 * 8 + rank * 4 + t] = bins[t];
}
