// A request for all CTAs of a cluster, whose barriers are not known to be initialised yet (R-C7).
// launch: grid=6 block=64 arch=sm_100a
// arg: out u32[6,64]=zeros
// expect: lifetime @request severity=error
// allow: barrier-misuse @request severity=error
// result: out = np.ones((6, 64), np.uint32)
#include "../blackwell.cuh"
INLINE void cluster_sync() { asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(u32* out) {
    __shared__ Response response;
    __shared__ u64 full;
    if (threadIdx.x == 0) init(full, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#ifdef RACY
    __syncthreads();
#else
    cluster_sync();
#endif
    u32 rank, tile = blockIdx.x;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    for (u32 parity = 0;; parity ^= 1) {
        if (threadIdx.x == 0) {
            expect(full, 16);
            if (rank == 0) request_for_all(response, full);  /*@request*/
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
