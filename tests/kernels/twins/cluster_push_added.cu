// Both CTAs add their tiles to that of rank 0 by bulk reductions, which need no order among themselves. Its threads read the sum once the
// bytes of both have come.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: missing-wait RAW @add @read severity=error
// result: out = 10 + 2 * np.arange(64) + 1
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(u32* out) {
    __shared__ __align__(128) u32 from[64], sum[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        ARRIVE_EXPECT(&full, rank ? 0 : 2 * sizeof sum);
    }
    from[t] = t + rank;
    sum[t] = 10;
    FENCE_PROXY();
    CLUSTER_SYNC();
    if (t == 0) PUSH_ADD(peer(sum, 0), from, sizeof from, peer(&full, 0));  /*@add*/
#ifndef RACY
    if (rank == 0) WAIT_CLUSTER(&full, 0);
#endif
    if (rank == 0) out[t] = sum[t];  /*@read*/
#ifdef RACY
    if (rank == 0) WAIT_CLUSTER(&full, 0);
#endif
    CLUSTER_SYNC();
}
