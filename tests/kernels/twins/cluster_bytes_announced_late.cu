// Each CTA sends half of a tile to both. CTA 0 announces its half at the barrier of CTA 1 by expect_tx, and in the racy twin nothing orders
// that before the one arrival there: the phase of CTA 1 can end with its own half.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: barrier-misuse @announce severity=error
// allow: missing-wait severity=error
// allow: lifetime severity=error
// result: out = x
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ __align__(128) float tile[128];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
#ifdef RACY
        INIT(&full, 1);
#else
        INIT(&full, 2);
#endif
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    if (t == 0) {
        if (rank == 0) {
            EXPECT_THERE(peer(&full, 1), 256); /*@announce*/
#ifndef RACY
            ARRIVE_THERE(peer(&full, 1));
#endif
            MULTICAST(tile, x, 256, &full, 2);
        } else {
            ARRIVE_EXPECT(&full, 256);
            MULTICAST(tile + 64, x + 64, 256, &full, 2);
        }
    }
    if (rank == 1) {
        WAIT_CLUSTER(&full, 0);
        for (int i = t; i < 128; i += 64) out[i] = tile[i];
    }
    CLUSTER_SYNC();
}
