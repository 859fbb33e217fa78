// sm_100a pair of CTAs: operands by TMA into both, one product of .cta_group::2 for each of two stages, commit to both, drain by each CTA.
// launch: grid=2 block=128 arch=sm_100a
// arg: x f16[2,2,2048]=random
// arg: y f16[2,2,512]=random
// arg: out f32[2,128,64]=zeros
// bug 1: missing-wait|data-race the leader does not wait for the peer's operands
// bug 2: lifetime|barrier-misuse no cluster barrier before the first remote arrival
// bug 3: deadlock the commit names one CTA
// bug 4: clean each CTA frees and leaves when it has drained (T6)
// bug 5: missing-wait the peer drains without a wait
// bug 6: deadlock|tcgen05-misuse only the leader deallocates
// bug 7: missing-wait the stage is refilled before the product has read it
// bug 8: scope|missing-wait|data-race warn the peer's arrival is of cta scope
#include "../blackwell_pair.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128) kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 A[2048], B[512];
    __shared__ alignas(8) u64 loaded, ready, done;
    __shared__ u32 base;
    const u32 t = threadIdx.x, rank = rank_in_cluster();
    if (t == 0) {
        init(loaded, 1), init(ready, 2), init(done, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
#if BUG == 2
    __syncthreads();
    if (t == 32) ARRIVE_THERE(peer(&done, rank ^ 1));
#endif
    cluster_sync();
    if (t < 32) alloc_pair(base, 64);
    __syncthreads();
    cluster_sync();
    const u32 d = base;
#pragma unroll 1
    for (u32 k = 0; k < 2; k++) {
        if (t == 0) {
            expect(loaded, 4096 + 1024);
            bulk_load(A, x + (rank * 2 + k) * 2048, 4096, loaded), bulk_load(B, y + (rank * 2 + k) * 512, 1024, loaded);
            wait(loaded, k);
#if BUG == 8
            ARRIVE_THERE_CTA(peer(&ready, 0));
#elif BUG == 1
            if (rank == 0) {
                ARRIVE_THERE(peer(&ready, 0));
                ARRIVE_THERE(peer(&ready, 0));
            }
#else
            ARRIVE_THERE(peer(&ready, 0));
#endif
            if (rank == 0) {
                asm volatile("{.reg .pred p;\nL: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@!p bra L;}" ::"r"(shared(&ready)), "r"(k) : "memory");
                multiply_pair(d, A, B, k);
                asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(shared(&done)), "h"((unsigned short)(BUG == 3 ? 1 : 3)) : "memory");
            }
        }
        __syncwarp();
#if BUG == 5
        if (rank == 0 || k == 0)
#elif BUG == 7
        if (k == 1)
#endif
        wait(done, k);
        fence_after_sync();
    }
    float v[8];
    for (u32 column = 0; column < 64; column += 8) {
        load(v, own_lanes(d) + column);
        wait_loads();
        for (u32 i = 0; i < 8; i++) out[(rank * 128 + t) * 64 + column + i] = v[i];
    }
    fence_before_sync();
    __syncthreads();
#if BUG != 4
    cluster_sync();
#endif
    fence_after_sync();
    if (t < 32 && !(BUG == 6 && rank == 1)) dealloc_pair(d, 64);
#if BUG != 4
    cluster_sync();
#endif
}
