// Two CTAs store into the same words of a third one with st.async: nothing orders their issue, so the words may have either value.
// launch: grid=3 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: data-race WAW @store @store severity=error
// result: out = np.concatenate([np.arange(32), np.arange(32, 64) + 2])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(3) kernel(u32* out) {
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
    u32 half = t % 32;
#ifdef RACY
    if (rank != 1 && t < 32) PUT_ASYNC(peer(box + half, 1), t + rank, peer(&full, 1));  /*@store*/
#else
    if (rank != 1 && t < 32) PUT_ASYNC(peer(box + rank / 2 * 32 + half, 1), t + rank / 2 * 32 + rank, peer(&full, 1));
#endif
    if (rank == 1) {
        WAIT_CLUSTER(&full, 0);
        out[t] = box[t];
    }
    CLUSTER_SYNC();
}
