// A pair of CTAs with one accumulator, used twice: the odd CTA says that it has loaded its half by an arrival at the leader's barrier, whose default
// scope is .cta (ISA "mbarrier.arrive"). The loads are over when it does, and no data is left to publish; pipelines of CUTLASS do the same.
// launch: grid=2 block=128 arch=sm_100a
// arg: x f16[256,16]=random
// arg: y f16[64,16]=random
// arg: out f32[256,64]=zeros
// expect: scope severity=warning
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell_pair.cuh"
#ifdef RACY
#define RELEASE ""
#else
#define RELEASE ".release.cluster"
#endif
INLINE void arrive_at_leader(u64& barrier) {
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, 0; mbarrier.arrive" RELEASE ".shared::cluster.b64 _, [there]; }"
                 ::"r"(shared(&barrier)) : "memory");
}
INLINE void wait_in_cluster(u64& barrier, u32 parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra again; }"
                 ::"r"(shared(&barrier)), "r"(parity) : "memory");
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[32 * 16];
    __shared__ u32 base;
    __shared__ u64 done, drained;
    u32 rank = rank_in_cluster();
    fill(a, x + rank * 128 * 16, 128), fill(b, y + rank * 32 * 16, 32);
    if (threadIdx.x == 0) init(done, 1), init(drained, 256);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    fence_async();
    cluster_sync();
    if (threadIdx.x < 32) alloc_pair(base, COLUMNS);
    fence_before_sync();
    cluster_sync();
    fence_after_sync();
    u32 at = base;
    for (u32 round = 0; round < 2; ++round) {
        if (rank == 0 && threadIdx.x == 0) {
            if (round) wait_in_cluster(drained, 0);
            fence_after_sync();
            multiply_pair(at, a, b, 0);
            commit_to_both(done);
        }
        wait_in_cluster(done, round);
        fence_after_sync();
        for (u32 column = 0; column < COLUMNS; column += 8) {
            float v[8];
            load(v, own_lanes(at) + column);
            wait_loads();
            put(out + rank * 128 * COLUMNS, column, v);
        }
        arrive_at_leader(drained);
    }
    fence_before_sync();
    cluster_sync();
    if (threadIdx.x < 32) dealloc_pair(at, COLUMNS);
    cluster_sync();
}
