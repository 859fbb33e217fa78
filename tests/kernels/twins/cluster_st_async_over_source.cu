// A bulk store may still read the bytes on which the peer's st.async lands: the issuer has not waited when it tells the peer to go on.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: missing-wait WAR @copy @async severity=error
// result: out = np.full(64, 5)
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
    if (rank == 1 && t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(__cvta_generic_to_global(out)), "r"(shared(box)) : "memory");  /*@copy*/
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#ifndef RACY
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
    }
    CLUSTER_SYNC();
    if (rank == 0) PUT_ASYNC(peer(box + t, 1), 1u, peer(&full, 1));  /*@async*/
    if (rank == 1) WAIT_CLUSTER(&full, 0);
    if (rank == 1 && t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    CLUSTER_SYNC();
}
