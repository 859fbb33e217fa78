// Each CTA hands what it has on to the next one of the ring, and adds up what comes by: CTAS values for each thread.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(CTAS) kernel(const unsigned* x, unsigned* out) {
    __shared__ unsigned box[2][64];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned t = threadIdx.x, next = (cluster.block_rank() + 1) % CTAS, value = x[blockIdx.x * 64 + t], sum = 0;
    cluster.sync();
#pragma unroll 1
    for (unsigned step = 0; step < CTAS; step++) {
        cluster.map_shared_rank(box[step & 1], next)[t] = value;
        cluster.sync();
        value = box[step & 1][t];
        sum += value;
    }
    out[blockIdx.x * 64 + t] = sum;
}
