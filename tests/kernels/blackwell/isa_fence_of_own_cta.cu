// Operands of a product that the peer issues are fenced for the own CTA's shared memory only (T14).
// launch: grid=2 block=128 arch=sm_100a
// arg: x f16[256,16]=random
// arg: y f16[64,16]=random
// arg: out f32[256,64]=zeros
// policy: isa
// expect: missing-proxy-fence RAW @fill @product severity=warning
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell_pair.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[32 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    u32 rank = rank_in_cluster();
    for (u32 i = threadIdx.x; i < 128 * 16; i += blockDim.x) {
        a[element(i / 16, i % 16)] = x[rank * 128 * 16 + i];  /*@fill*/
        if (i < 32 * 16) b[element(i / 16, i % 16)] = y[rank * 32 * 16 + i];  /*@fill*/
    }
#ifdef RACY
    fence_async_shared();
#else
    fence_async_cluster();
#endif
    if (threadIdx.x == 0) init(done, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cluster_sync();
    if (threadIdx.x < 32) alloc_pair(base, COLUMNS);
    fence_before_sync();
    cluster_sync();
    fence_after_sync();
    if (rank == 0 && threadIdx.x == 0) {
        multiply_pair(base, a, b, 0);  /*@product*/
        commit_to_both(done);
    }
    wait(done, 0);
    fence_after_sync();
    float v[8];
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, own_lanes(base) + column);
        wait_loads();
        put(out + rank * 128 * COLUMNS, column, v);
    }
    fence_before_sync();
    cluster_sync();
    fence_after_sync();
    if (threadIdx.x < 32) dealloc_pair(base, COLUMNS);
}
