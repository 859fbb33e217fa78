// D4: what a copy of one CTA has written is copied on by another CTA. Both use the async proxy, whose order the ISA keeps within a CTA only.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// policy: isa
// expect: missing-proxy-fence RAW @push @copy severity=warning
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
    if (rank == 1 && t == 0) {
        WAIT_CLUSTER(&full, 0);
#ifndef RACY
        FENCE_PROXY();
#endif
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(__cvta_generic_to_global(out)), "r"(shared(box)) : "memory");  /*@copy*/
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    CLUSTER_SYNC();
}
