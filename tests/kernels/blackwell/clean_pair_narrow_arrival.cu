// The odd CTA frees its columns when the even one says that all are done, told by arrivals at the scope of a CTA. A dealloc touches no cell: it is
// enough that the accesses are over (T21).
// launch: grid=2 block=128 arch=sm_100a
// arg: out f32[256,64]=zeros
// result: out = np.tile(np.repeat(np.arange(8, dtype=np.float32), 8), (256, 1))
#include "../blackwell_pair.cuh"
INLINE void arrive_at(u64& barrier, u32 rank) {
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(shared(&barrier)), "r"(rank) : "memory");
}
INLINE void wait_in_cluster(u64& barrier) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra again; }"
                 ::"r"(shared(&barrier)) : "memory");
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(float* out) {
    __shared__ u32 base;
    __shared__ u64 used, free_now;
    u32 rank = rank_in_cluster();
    if (threadIdx.x == 0) init(used, 128), init(free_now, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cluster_sync();
    if (threadIdx.x < 32) alloc_pair(base, COLUMNS);
    __syncthreads();
    u32 at = base, own = own_lanes(at);
    for (u32 column = 0; column < COLUMNS; column += 8) {
        float v[8];
        for (float& each : v) each = column / 8;
        store(own + column, v);
        wait_stores();
        load(v, own + column);
        wait_loads();
        put(out + rank * 128 * COLUMNS, column, v);
    }
    if (rank == 0) __syncthreads();
    if (rank == 1) arrive_at(used, 0);
    if (rank == 0 && threadIdx.x == 0) {
        wait_in_cluster(used);
        arrive_at(free_now, 1);
    }
    if (rank == 1 && threadIdx.x < 32) wait_in_cluster(free_now);
    __syncwarp();
    if (threadIdx.x < 32) dealloc_pair(at, COLUMNS);
    cluster_sync();
}
