// Clusters of 2 x 2 x 2 CTAs with blocks of two dimensions: each CTA reads from its opposite corner, and the ranks are those of the shape.
// launch: grid=4x2x2 block=8x8 arch=sm_90
// arg: out u32[2,8,64]=zeros
// result: out = np.arange(7, -1, -1)[None, :, None] * 64 + np.arange(64)[None, None] + np.arange(2)[:, None, None] * 1000
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 2, 2) kernel(u32* out) {
    __shared__ float mine[8][8];
    u32 t = threadIdx.x + 8 * threadIdx.y, rank = cluster_rank(), cluster = blockIdx.x / 2;
    u32 place = blockIdx.x % 2 + 2 * (blockIdx.y + 2 * blockIdx.z);
    mine[threadIdx.y][threadIdx.x] = place * 64 + t + 1000 * cluster;
    CLUSTER_SYNC();
    float value;
    GET(value, peer(&mine[threadIdx.y][threadIdx.x], 7 - rank));
    CLUSTER_SYNC_RELAXED();
    out[(cluster * 8 + rank) * 64 + t] = value;
}
