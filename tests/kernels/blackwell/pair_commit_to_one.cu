// A product of a pair is committed to the mbarrier of the leader only: the other CTA, which cannot wait there, loads its half of the result.
// launch: grid=2 block=128 arch=sm_100a
// arg: x f16[256,16]=random
// arg: y f16[64,16]=random
// arg: out f32[256,64]=zeros
// expect: missing-wait RAW @product @load severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell_pair.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[32 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    u32 rank = rank_in_cluster();
    for (u32 i = threadIdx.x; i < 128 * 16; i += blockDim.x) {
        a[element(i / 16, i % 16)] = x[rank * 128 * 16 + i];
        if (i < 32 * 16) b[element(i / 16, i % 16)] = y[rank * 32 * 16 + i];
    }
    fence_async_cluster();
    if (threadIdx.x == 0) init(done, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cluster_sync();
    if (threadIdx.x < 32) alloc_pair(base, COLUMNS);
    __syncthreads();
    if (rank == 0 && threadIdx.x == 0) {
        multiply_pair(base, a, b, 0);  /*@product*/
#ifdef RACY
        asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared(&done)) : "memory");
#else
        commit_to_both(done);
#endif
    }
#ifdef RACY
    if (rank == 0)
#endif
        wait(done, 0);
    float v[8];
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, own_lanes(base) + column);  /*@load*/
        wait_loads();
        put(out + rank * 128 * COLUMNS, column, v);
    }
    cluster_sync();
    if (threadIdx.x < 32) dealloc_pair(base, COLUMNS);
}
