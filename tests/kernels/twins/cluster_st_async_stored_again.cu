// A barrier of the cluster orders a store of the owner behind the issue of an st.async to the same bytes, not behind its end.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: missing-wait WAW @async @store severity=error
// result: out = np.full(64, 1)
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
    if (rank == 0) PUT_ASYNC(peer(box + t, 1), t + 3, peer(&full, 1));  /*@async*/
    CLUSTER_SYNC();
    if (rank == 1) {
#ifndef RACY
        WAIT_CLUSTER(&full, 0);
#endif
        box[t] = 1;  /*@store*/
        WAIT_CLUSTER(&full, 0);
        out[t] = box[t];
    }
    CLUSTER_SYNC();
}
