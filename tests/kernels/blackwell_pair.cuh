// What the kernels of blackwell/ for a pair of CTAs share: .cta_group::2, and a product of 256 x 64 x 16 in f16.
#pragma once
#include "blackwell.cuh"

constexpr u32 PAIR_SHAPE = 0x10100010;  // f16, D in f32, M = 256, N = 64, both operands K-major

INLINE void cluster_sync() { asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
INLINE u32 rank_in_cluster() {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
INLINE void fence_async_cluster() { asm volatile("fence.proxy.async.shared::cluster;" ::: "memory"); }
INLINE void alloc_pair(u32& base, u32 columns) {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared(&base)), "r"(columns) : "memory");
}
INLINE void dealloc_pair(u32 base, u32 columns) {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(base), "r"(columns) : "memory");
}
// Each CTA has 128 rows of A and 32 of B.
INLINE void multiply_pair(u32 d, const f16* a, const f16* b, u32 accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.u32 more, %4, 0;\n"
        "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, more;\n"
        "}" ::"r"(d), "l"(descriptor(a)), "l"(descriptor(b)), "r"(PAIR_SHAPE), "r"(accumulate) : "memory");
}
INLINE void commit_to_both(u64& barrier) {
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
                 ::"r"(shared(&barrier)), "h"((unsigned short)3) : "memory");
}
