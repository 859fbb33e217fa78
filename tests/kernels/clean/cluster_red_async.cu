// All CTAs add to each other's counts with red.async, beside ordinary atomics, and each waits for the bytes that come to it.
// launch: grid=4 block=32 arch=sm_90
// arg: out u32[4,8]=zeros
// result: out = np.full((4, 8), 4 * 4 + 4)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(4) kernel(u32* out) {
    __shared__ u32 count[8];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t < 8) count[t] = 0;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        ARRIVE_EXPECT(&full, 4 * 32 * 4);
    }
    CLUSTER_SYNC();
    for (u32 i = 0; i < 4; i++) ADD_ASYNC(peer(count + t % 8, (rank + i) % 4), 1u, peer(&full, (rank + i) % 4));
    ADD_AS("cluster", peer(count + t % 8, rank ^ 1), 1u);
    WAIT_CLUSTER(&full, 0);
    CLUSTER_SYNC();
    if (t < 8) out[rank * 8 + t] = count[t];
}
