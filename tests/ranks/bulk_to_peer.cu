// Bulk copies between two ranks: into a peer's memory, from it, and a sum there. START: a barrier first; READ: waits for the source only.
#define RANKS 2
#include "ranks.cuh"
typedef unsigned long long u64;
#define WAIT "cp.async.bulk.commit_group; cp.async.bulk.wait_group"
extern "C" __global__ void kernel(float *data0, float *data1, u32 *signals0, u32 *signals1, float *out, int rank) {
    LIST(float, data);
    LIST(u32, signals);
    float *mine = data[rank], *peers = data[1 - rank];
    __shared__ __align__(128) float tile[N];
    u32 at = (u32)__cvta_generic_to_shared(tile), t = threadIdx.x;
    tile[t] = rank + t;
#if defined(FROM)
    __shared__ __align__(8) u64 full;
    u32 phase = (u32)__cvta_generic_to_shared(&full), done;
    mine[t] = rank + t;
#ifndef NO_PROXY_FENCE
    asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
    barrier(signals, rank, 1);
    if (t == 0) {
#ifndef NO_PROXY_FENCE
        asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(phase));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" ::"r"(phase) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(at), "l"(peers), "r"(phase)
                     : "memory");
    }
    __syncthreads();
    do asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(phase) : "memory");
    while (!done);
    out[t] = tile[t];
#else
    mine[t] = 0;
#ifndef NO_START
    asm volatile("fence.proxy.async;" ::: "memory");
    barrier(signals, rank, 1);
#endif
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 128;" ::"l"(peers), "r"(at) : "memory");
#ifdef READ
        asm volatile(WAIT ".read 0;" ::: "memory");
#else
        asm volatile(WAIT " 0;" ::: "memory");
#endif
    }
    barrier(signals, rank, 2);
    out[t] = mine[t];
#endif
}
