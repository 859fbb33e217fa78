// The receiver of a copy stores to its source in the sender's memory, ordered behind the issue, before it has waited for the copy.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: missing-wait WAR @push @store severity=error
// result: out = np.arange(64)
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
    if (rank == 0 && t == 0) PUSH(peer(box, 1), from, 256, peer(&full, 1));  /*@push*/
    CLUSTER_SYNC();
    if (rank == 1) {
#ifndef RACY
        WAIT_CLUSTER(&full, 0);
#endif
        asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(peer(from + t, 0)), "r"(9u) : "memory");  /*@store*/
        WAIT_CLUSTER(&full, 0);
        out[t] = box[t];
    }
    CLUSTER_SYNC();
}
