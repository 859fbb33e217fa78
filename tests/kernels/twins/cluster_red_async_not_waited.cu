// red.async adds to the peer's shared memory and signals the peer's barrier: a barrier of the cluster does not wait for it.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: missing-wait RAW @store @read severity=error
// result: out = np.arange(64) + 3
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(u32* out) {
    __shared__ __align__(16) u32 box[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    box[t] = 3;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        if (rank == 1) ARRIVE_EXPECT(&full, sizeof box);
    }
    CLUSTER_SYNC();
    if (rank == 0) ADD_ASYNC(peer(box + t, 1), t, peer(&full, 1));  /*@store*/
#ifdef RACY
    CLUSTER_SYNC();
#endif
    if (rank == 1) {
#ifndef RACY
        WAIT_CLUSTER(&full, 0);
#endif
        u32 value = box[t];  /*@read*/
        WAIT_CLUSTER(&full, 0);
        out[t] = value;
    }
    CLUSTER_SYNC_RELAXED();
}
