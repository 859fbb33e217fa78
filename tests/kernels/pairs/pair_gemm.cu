// sm_100a: a pair of CTAs, .cta_group::2: operands by TMA into both CTAs (the bytes of both on the leader's barrier), multicast commit.
// launch: grid=2 block=128 arch=sm_100a
// arg: x tma:f16[2048,16]=random,box=8x128
// arg: y tma:f16[512,16]=random,box=8x32
// arg: out f32[2,128,64]=zeros
// bug 1: deadlock|missing-wait leader expects its own bytes only
// bug 2: missing-wait|deadlock commit without multicast: the peer does not learn
// bug 3: lifetime no cluster barrier before the alloc
// bug 4: clean no cluster barrier before the dealloc and the exit: all is complete (T6)
// bug 5: deadlock the commit of a stage reaches the leader only
// bug 6: deadlock only the leader allocates
// bug 7: data-race|missing-wait|missing-proxy-fence peer's operands are written by itself, no cluster barrier before the product
// bug 8: missing-proxy-fence the same with a cluster barrier and without a proxy fence
// bug 9: clean the same with both
#include "../blackwell_pair.cuh"
INLINE u32 leader_bar(u64& bar) { return shared(&bar) & 0xFEFFFFFF; }
INLINE void tensor_load_pair(void* to, const TensorMap& map, int x, int y, u64& bar) {
    asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared(to)), "l"(&map), "r"(x), "r"(y), "r"(leader_bar(bar)) : "memory");
}
INLINE void wait_cluster(u64& barrier, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(shared(&barrier)), "r"(parity) : "memory");
}
enum { STEPS = 4 };
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128) kernel(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap y, float* out) {
    __shared__ alignas(128) f16 A[2][2048], B[2][512];
    __shared__ alignas(8) u64 full[2], empty[2], done;
    __shared__ u32 base;
    const u32 t = threadIdx.x, warp = t / 32, rank = rank_in_cluster();
    if (t == 0) {
        for (int s = 0; s < 2; s++) init(full[s], 1), init(empty[s], 1);
        init(done, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
#if BUG >= 7
    for (int s = 0; s < 2; s++) {
        for (u32 i = t; i < 2048; i += 128) A[s][i] = i % 7;
        for (u32 i = t; i < 512; i += 128) B[s][i] = i % 5;
    }
#if BUG != 8
    fence_async();
#endif
#endif
#if BUG != 3 && BUG != 7
    cluster_sync();
#endif
#if BUG == 6
    if (warp == 0 && rank == 0) alloc_pair(base, 64);
#else
    if (warp == 0) alloc_pair(base, 64);
#endif
#if BUG == 3
    cluster_sync();
#elif BUG == 7
    __syncthreads();
#else
    fence_before_sync();
    cluster_sync();
    fence_after_sync();
#endif
#if BUG < 7
    if (t == 32) {
#pragma unroll 1
        for (int k = 0; k < STEPS; k++) {
            int s = k % 2;
            wait_cluster(empty[s], (k / 2 & 1) ^ 1);
            if (rank == 0) expect(full[s], BUG == 1 ? 5120 : 10240);
            for (int half = 0; half < 2; half++) {
                tensor_load_pair(A[s] + half * 1024, x, half * 8, (rank * STEPS + k) * 128, full[s]);
                tensor_load_pair(B[s] + half * 256, y, half * 8, (rank * STEPS + k) * 32, full[s]);
            }
        }
    }
#endif
    if (t == 64 && rank == 0) {
#pragma unroll 1
        for (int k = 0; k < STEPS; k++) {
            int s = k % 2;
            if (BUG < 7) wait_cluster(full[s], k / 2 & 1);
            fence_after_sync();
            multiply_pair(base, A[s], B[s], k != 0);
#if BUG >= 7
#elif BUG == 5
            asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared(&empty[s])) : "memory");
#else
            commit_to_both(empty[s]);
#endif
        }
#if BUG == 2
        asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared(&done)) : "memory");
#else
        commit_to_both(done);
#endif
    }
    wait_cluster(done, 0);
    fence_after_sync();
    for (u32 column = 0; column < 64; column += 8) {
        float v[8];
        load(v, own_lanes(base) + column);
        wait_loads();
        put(out + rank * 8192, column, v);
    }
    fence_before_sync();
#if BUG == 4
    __syncthreads();
#else
    cluster_sync();
#endif
    fence_after_sync();
    if (warp == 0) {
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
        dealloc_pair(base, 64);
    }
#if BUG != 4
    cluster_sync();
#endif
}
