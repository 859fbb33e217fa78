// Blackwell: each CTA of a pair copies a tile to itself (.shared::cta), and with .cta_group::2 both copies signal the leader's barrier,
// as Pallas writes it. The other CTA hears of its own tile from the leader.
// Not run on an H200: the form is one of sm_100a.
// backends: cpu
// launch: grid=2 block=64 arch=sm_100a
// arg: x tma:f32[2,64]=arange,box=1x64
// arg: out f32[2,64]=zeros
// expect: missing-wait RAW @load @read severity=error
// allow: uninitialized-read @read
// result: out = x
#include "../mbarrier.cuh"
#include "../cluster.cuh"
struct alignas(64) TensorMap {
    u64 words[16];
};
#define PAIR_LOAD(to, map, x, y, bar) \
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%0], [%1, {%2, %3}], [%4];" \
                 :: "r"(shared(to)), "l"(&map), "r"(x), "r"(y), "r"(bar) : "memory")
extern "C" __global__ void __cluster_dims__(2) kernel(const __grid_constant__ TensorMap x, float* out) {
    __shared__ __align__(128) float tile[64];
    __shared__ u64 full, told;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        INIT(&told, 64);
        FENCE_INIT();
        if (rank == 0) ARRIVE_EXPECT(&full, 2 * sizeof tile);
    }
    CLUSTER_SYNC();
    if (t == 0) PAIR_LOAD(tile, x, 0, rank, peer(&full, 0));  /*@load*/
    if (rank == 0) {
        WAIT_CLUSTER(&full, 0);
        ARRIVE_THERE(peer(&told, 1));
    }
#ifndef RACY
    if (rank == 1) WAIT_CLUSTER(&told, 0);
#endif
    float value = tile[t];  /*@read*/
    if (rank == 1) WAIT_CLUSTER(&told, 0);
    CLUSTER_SYNC_RELAXED();
    out[rank * 64 + t] = value;
}
