// Only the CTA that requests expects the bytes of the response; the other one of the cluster gets them too (R-C6).
// launch: grid=6 block=64 arch=sm_100a
// arg: out u32[6,64]=zeros
// expect: deadlock severity=error
// result: out = np.ones((6, 64), np.uint32)
#include "../blackwell.cuh"
INLINE void cluster_sync() { asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(u32* out) {
    __shared__ Response response;
    __shared__ u64 full;
    if (threadIdx.x == 0) init(full, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cluster_sync();
    u32 rank, tile = blockIdx.x;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    for (u32 parity = 0;; parity ^= 1) {
#ifdef RACY
        bool expects = rank == 0;
#else
        bool expects = true;
#endif
        if (threadIdx.x == 0) {
            if (expects) expect(full, 16);
            if (rank == 0) request_for_all(response, full);
        }
        out[tile * blockDim.x + threadIdx.x] += 1;
        wait(full, parity);
        bool more = taken(response, tile);
        tile += rank;
        fence_async_shared();
        cluster_sync();
        if (!more) break;
    }
}
