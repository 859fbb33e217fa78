// A strong store beside a bulk reduction: another proxy, and no update, so the two are not morally strong (8.7), whatever their scopes.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: data-race WAW @push @store severity=error
// result: out = np.arange(64) + 5
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
#ifdef RACY
    if (rank == 1) asm volatile("st.relaxed.cta.shared::cta.u32 [%0], %1;" :: "r"(shared(box + t)), "r"(5u) : "memory");  /*@store*/
#endif
    CLUSTER_SYNC();
    if (rank == 1) {
        WAIT_CLUSTER(&full, 0);
        out[t] = box[t];
    }
    CLUSTER_SYNC();
}
