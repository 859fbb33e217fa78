// A CTA stores to bytes on which the multicast of its peer lands: nothing orders the two, and the loaded values may be lost.
// launch: grid=2 block=64 arch=sm_90
// arg: x u32[64]=arange
// arg: out u32[2,64]=zeros
// expect: data-race WAW @load @store severity=error
// result: out = np.stack([np.arange(64)] * 2)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const u32* x, u32* out) {
    __shared__ __align__(128) u32 box[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        ARRIVE_EXPECT(&full, 256);
    }
    CLUSTER_SYNC();
    if (rank == 0 && t == 0) MULTICAST(box, x, 256, &full, 3);  /*@load*/
#ifdef RACY
    if (rank == 1) box[t] = 7;  /*@store*/
#endif
    WAIT(&full, 0);
    out[rank * 64 + t] = box[t];
    CLUSTER_SYNC();
}
