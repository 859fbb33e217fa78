// A tile is loaded over the word of tcgen05.alloc. The product of the other CTA is behind the load, and so behind the word (T5).
// launch: grid=2 block=128 arch=sm_100a
// arg: x tma:f16[256,16]=random,box=128x8
// arg: y f16[64,16]=random
// arg: out f32[256,64]=zeros
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell_pair.cuh"
INLINE void load_half(f16* to, const TensorMap& map, u32 k, u32 row, u64& barrier_of_leader) {
    asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared(to)), "l"(&map), "r"(k), "r"(row), "r"(shared(&barrier_of_leader) & 0xFEFFFFFFu) : "memory");
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const __grid_constant__ TensorMap x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[32 * 16];
    __shared__ u64 full, done;
    u32 rank = rank_in_cluster();
    u32& word = *reinterpret_cast<u32*>(a);
    for (u32 i = threadIdx.x; i < 32 * 16; i += blockDim.x) b[element(i / 16, i % 16)] = y[rank * 32 * 16 + i];
    fence_async_cluster();
    if (threadIdx.x == 0) init(full, 1), init(done, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cluster_sync();
    if (threadIdx.x < 32) alloc_pair(word, COLUMNS);
    __syncthreads();
    u32 base = word;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (rank == 0) expect(full, 2 * sizeof a);
        load_half(a, x, 0, rank * 128, full);
        load_half(a + 128 * 8, x, 8, rank * 128, full);
    }
    if (rank == 0 && threadIdx.x == 0) {
        wait(full, 0);
        u64 left = (shared(a) & 0x3FFFF) >> 4 | 128ull << 16 | 8ull << 32 | 1ull << 46;
        asm volatile("{ .reg .pred more; setp.ne.u32 more, 0, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, more; }"
                     ::"r"(base), "l"(left), "l"(descriptor(b)), "r"(PAIR_SHAPE) : "memory");
        commit_to_both(done);
    }
    wait(done, 0);
    float v[8];
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, own_lanes(base) + column);
        wait_loads();
        put(out + rank * 128 * COLUMNS, column, v);
    }
    cluster_sync();
    if (threadIdx.x < 32) dealloc_pair(base, COLUMNS);
}
