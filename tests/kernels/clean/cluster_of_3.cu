// Clusters of 3 CTAs with blocks of 96 threads: neither is a power of two. Each CTA reads from the next one, through an mbarrier of its own.
// launch: grid=6 block=96 arch=sm_90
// arg: out f32[2,3,96]=zeros
// result: out = (np.arange(1, 3 + 1) % 3)[None, :, None] * 100 + np.arange(96) + np.zeros((2, 1, 1))
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(3) kernel(float* out) {
    __shared__ float mine[96], box[96];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank(), before = (rank + 3 - 1) % 3;
    if (t == 0) {
        INIT(&full, 96);
        FENCE_INIT();
    }
    mine[t] = rank * 100.0f + t;
    CLUSTER_SYNC();
    PUT(peer(box + t, before), mine[t]);
    ARRIVE_THERE(peer(&full, before));
    WAIT_CLUSTER(&full, 0);
    float value;
    GET(value, peer(mine + t, (rank + 1) % 3));
    CLUSTER_SYNC_RELAXED();
    out[blockIdx.x * 96 + t] = (value + box[t]) / 2;
}
