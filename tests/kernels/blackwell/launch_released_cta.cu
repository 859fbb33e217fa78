// Every CTA of the pair reads the response in its own memory and tells CTA 0, with the default scope of an arrival, .cta, before the next request
// for both. The reads, and the last request, are over by then: a warning.
// launch: grid=8 block=64 arch=sm_100a
// arg: out u32[8,64]=zeros
// expect: scope @read @request severity=warning
// allow: scope @request severity=warning
// result: out = np.ones((8, 64), np.uint32)
#include "../blackwell_pair.cuh"
#ifdef RACY
#define ARRIVE "mbarrier.arrive.shared::cluster.b64"
#else
#define ARRIVE "mbarrier.arrive.release.cluster.shared::cluster.b64"
#endif
INLINE void arrive_at_leader(u64& barrier) {
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, 0; " ARRIVE " _, [there]; }" ::"r"(shared(&barrier)) : "memory");
}
INLINE void wait_in_cluster(u64& barrier, u32 parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra again; }"
                 ::"r"(shared(&barrier)), "r"(parity) : "memory");
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(u32* out) {
    __shared__ Response response;
    __shared__ u64 full, empty;
    u32 rank = rank_in_cluster(), tile = blockIdx.x;
    if (threadIdx.x == 0) init(full, 1), init(empty, 128);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cluster_sync();
    for (u32 round = 0;; ++round) {
        if (threadIdx.x == 0) {
            expect(full, 16);
            if (rank == 0 && round) wait_in_cluster(empty, (round - 1) & 1);
            if (rank == 0) request_for_all(response, full);  /*@request*/
        }
        out[tile * blockDim.x + threadIdx.x] += 1;
        wait(full, round & 1);
        bool more = taken(response, tile);  /*@read*/
        tile += rank;
        fence_async_shared();
        arrive_at_leader(empty);
        if (!more) break;
    }
    cluster_sync();
}
