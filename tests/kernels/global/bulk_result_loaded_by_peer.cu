// D4: what a bulk store of one CTA has written is loaded by a bulk copy of another one. Both use the async proxy, whose order the ISA keeps
// within a CTA only (8.9.5): it asks for a proxy fence.
// 
// launch: grid=2 block=64 arch=sm_90a
// arg:    x u32[64]=zeros
// arg:    out u32[64]=zeros
// policy: isa
// expect: missing-proxy-fence RAW @store @load severity=warning
// result: out = np.arange(64) + 5
#include "../hopper.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(u32* x, u32* out) {
    __shared__ alignas(128) u32 tile[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    tile[t] = t + 5;
    if (t == 0) init(full, 1);
    fence_async_shared();
    __syncthreads();
    if (rank == 0 && t == 0) {
        bulk_store(x, tile, 256);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
#ifndef RACY
        fence_async();
#endif
    }
    CLUSTER_SYNC();
    if (rank == 0) return;
    if (t == 0) {
        expect(full, 256);
        bulk_load(tile, x, 256, full);  /*@load*/
    }
    wait(full, 0);
    out[t] = tile[t];
}
