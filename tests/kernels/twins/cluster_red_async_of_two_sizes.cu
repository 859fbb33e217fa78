// Two red.async of different sizes are each performed as a whole (ISA 8.7.2), and no axiom says more.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: data-race WAW @wide @narrow severity=warning
// result: out = np.full(64, 5) + np.tile([1, 0], 32)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
#define ADD_WIDE(to, value, bar) \
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%0], %1, [%2];" \
                 :: "r"(to), "l"(value), "r"(bar) : "memory")
extern "C" __global__ void __cluster_dims__(2) kernel(u32* out) {
    __shared__ __align__(128) u32 box[64], from[64];
    __shared__ u64 full, more;
    u32 t = threadIdx.x, rank = cluster_rank();
    box[t] = 5, from[t] = t;
    if (t == 0) {
        INIT(&full, 1);
        INIT(&more, 1);
        FENCE_INIT();
        if (rank == 1) { ARRIVE_EXPECT(&full, 256); ARRIVE_EXPECT(&more, 256); }
    }
    FENCE_PROXY();
    CLUSTER_SYNC();
    if (rank == 0 && t % 2 == 0) ADD_WIDE(peer(box + t, 1), 1ull, peer(&full, 1));  /*@wide*/
#ifdef RACY
    if (rank == 0) ADD_ASYNC(peer(box + t, 1), 0u, peer(&more, 1));  /*@narrow*/
#else
    if (rank == 0) ADD_ASYNC(peer(from + t, 1), 0u, peer(&more, 1));
#endif
    if (rank == 1) {
        WAIT_CLUSTER(&full, 0);
        WAIT_CLUSTER(&more, 0);
        out[t] = box[t];
    }
    CLUSTER_SYNC();
}
