// CTA 0 announces at its peer's barrier how many bytes it sends there: expect_tx through mapa. It announces one of two tiles, and the
// peer's phase may be over before the other tile has landed.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: missing-wait RAW @load @read severity=error
// allow: uninitialized-read @read
// result: out = x
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ __align__(128) float tile[128];
    __shared__ u64 full, later;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        INIT(&later, 1);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    if (rank == 0 && t == 0) {
        EXPECT_THERE(peer(&full, 1), 256);
#ifdef RACY
        EXPECT_THERE(peer(&later, 1), 256);
#else
        EXPECT_THERE(peer(&full, 1), 256);
#endif
        ARRIVE_THERE(peer(&full, 1));
        ARRIVE_THERE(peer(&later, 1));
        MULTICAST(tile, x, 256, &full, 2);
#ifdef RACY
        MULTICAST(tile + 64, x + 64, 256, &later, 2);  /*@load*/
#else
        MULTICAST(tile + 64, x + 64, 256, &full, 2);
#endif
    }
    if (rank == 1) {
        WAIT_CLUSTER(&full, 0);
        for (int i = t; i < 128; i += 64) out[i] = tile[i];  /*@read*/
        WAIT_CLUSTER(&later, 0);
    }
    CLUSTER_SYNC_RELAXED();
}
