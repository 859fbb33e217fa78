// A bulk reduction changes each element by a relaxed operation: with an atomic of .cta scope of another CTA it races.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: scope|data-race WAW @push @atomic severity=error
// result: out = np.arange(64) + 6
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
    if (rank == 0 && t == 0) PUSH_ADD(peer(box, 1), from, 256, peer(&full, 1));  /*@push*/
    if (rank == 1) {
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
