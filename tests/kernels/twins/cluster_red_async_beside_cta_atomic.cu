// red.async is a relaxed operation of .cluster scope. An atomic of .cta scope at the same bytes does not include its thread.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: scope|data-race WAW @async @atomic severity=error
// result: out = np.arange(64) + 9
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(u32* out) {
    __shared__ __align__(128) u32 box[64], from[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    box[t] = 5, from[t] = t;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        if (rank == 1) ARRIVE_EXPECT(&full, 256);
    }
    FENCE_PROXY();
    CLUSTER_SYNC();
    if (rank == 0) {
        ADD_ASYNC(peer(box + t, 1), t + 3, peer(&full, 1));  /*@async*/
    } else {
#ifdef RACY
        ADD_AS("cta", peer(box + t, 1), 1u);  /*@atomic*/
#else
        ADD_AS("cluster", peer(box + t, 1), 1u);
#endif
    }
    CLUSTER_SYNC();
    if (rank == 1) {
        WAIT_CLUSTER(&full, 0);
        out[t] = box[t];
    }
    CLUSTER_SYNC();
}
