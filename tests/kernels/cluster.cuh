// Functions for the kernels of twins/ and clean/ that run in clusters. mbarrier.cuh or hopper.cuh comes first.
// Macros, so that a finding names the line that uses one. A peer's address is what mapa made of one's own.
#pragma once

__device__ __forceinline__ u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ u32 peer(const volatile void* p, u32 rank) {
    u32 there, here = (u32)__cvta_generic_to_shared(const_cast<const void*>(p));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
    return there;
}

#define CLUSTER_ARRIVE() asm volatile("barrier.cluster.arrive.aligned;" ::: "memory")
#define CLUSTER_ARRIVE_RELAXED() asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory")
#define CLUSTER_WAIT() asm volatile("barrier.cluster.wait.aligned;" ::: "memory")
#define CLUSTER_SYNC() do { CLUSTER_ARRIVE(); CLUSTER_WAIT(); } while (0)
// Tells that all CTAs have started, or that none has ended, and nothing else.
#define CLUSTER_SYNC_RELAXED() do { CLUSTER_ARRIVE_RELAXED(); CLUSTER_WAIT(); } while (0)
#define FENCE_INIT() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")

#define PUT(there, value) asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(there), "f"(value) : "memory")
#define GET(value, there) asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(there) : "memory")
// A flag that publishes what was stored before it, and the load that looks at it.
#define PUT_FLAG(scope, there, value) asm volatile("st.release." scope ".shared::cluster.u32 [%0], %1;" :: "r"(there), "r"((u32)(value)) : "memory")
#define GET_FLAG(value, there) asm volatile("ld.acquire.cluster.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there) : "memory")
#define ADD_AS(form, there, value) asm volatile("red.relaxed." form ".shared::cluster.add.u32 [%0], %1;" :: "r"(there), "r"(value) : "memory")

#define ARRIVE_THERE(there) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(there) : "memory")
#define ARRIVE_THERE_CTA(there) asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" :: "r"(there) : "memory")
#define ARRIVE_THERE_RELAXED(there) asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" :: "r"(there) : "memory")
#define EXPECT_THERE(there, bytes) \
    asm volatile("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" :: "r"(there), "r"((u32)(bytes)) : "memory")
#define ARRIVE_EXPECT_THERE(there, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" :: "r"(there), "r"((u32)(bytes)) : "memory")
#define WAIT_CLUSTER(bar, parity) WAIT_AS("try_wait.parity.acquire.cluster", bar, "r", (u32)(parity))

#define MULTICAST(to, from, bytes, bar, mask) \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" \
                 :: "r"(shared(to)), "l"(__cvta_generic_to_global(from)), "r"((u32)(bytes)), "r"(shared(bar)), "h"((unsigned short)(mask)) : "memory")
#define PUSH(there, from, bytes, bar_there) \
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \
                 :: "r"(there), "r"(shared(from)), "r"((u32)(bytes)), "r"(bar_there) : "memory")
#define PUSH_ADD(there, from, bytes, bar_there) \
    asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], %2, [%3];" \
                 :: "r"(there), "r"(shared(from)), "r"((u32)(bytes)), "r"(bar_there) : "memory")
#define PUT_ASYNC(there, value, bar_there) \
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" :: "r"(there), "r"(value), "r"(bar_there) : "memory")
#define ADD_ASYNC(there, value, bar_there) \
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" \
                 :: "r"(there), "r"(value), "r"(bar_there) : "memory")
