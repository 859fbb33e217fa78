// out[c * 64 + t] = scale[t] * (c + 1) * (the sum over i of tiles[i * 64 + t]), by one cluster of two CTAs c of 64 threads.
// The leader (rank 0) fetches the scale and each tile once, for both CTAs: a multicast copy writes to the same place in the
// shared memory of each CTA, and signals the mbarrier at the same place in each CTA. The scale comes first and is used last.

#define THREADS 64
#define BYTES (THREADS * 4)

typedef unsigned long long Barrier;

__device__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void init(Barrier* bar) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(bar)) : "memory"); }

__device__ void expect(Barrier* bar) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(bar)), "n"(BYTES) : "memory");
}

__device__ void wait(Barrier* bar, unsigned parity) {
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra L; }"
                 ::"r"(address(bar)), "r"(parity) : "memory");
}

__device__ void multicast(float* to, const float* from, Barrier* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 ::"r"(address(to)), "l"(from), "n"(BYTES), "r"(address(bar)), "h"((unsigned short)3) : "memory");
}

__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) scaled_sum(const float* scale, const float* tiles, float* out, int n) {
    __shared__ alignas(128) float scales[THREADS], tile[THREADS];
    __shared__ Barrier ready, full;
    unsigned rank, t = threadIdx.x;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        init(&ready);
        init(&full);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(&ready);
    }
    cluster_sync();  // the barriers of both CTAs are there
    if (rank == 0 && t == 0) multicast(scales, scale, &ready);

    float sum = 0;
    for (int i = 0; i < n; i++) {
        if (t == 0) expect(&full);
        cluster_sync();  // nobody reads the tile before any more
        if (rank == 0 && t == 0) multicast(tile, tiles + i * THREADS, &full);
        wait(&full, i & 1);
        sum += tile[t];
    }

    wait(&ready, 0);
    out[blockIdx.x * THREADS + t] = sum * scales[t] * (rank + 1);
    wait(&ready, 0);  // no CTA goes while a copy may still write to it,
    cluster_sync();   // nor while the other one may still count on it
}
