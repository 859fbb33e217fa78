// Two CTAs copy into the same bytes of a third one: nothing orders their issue.
// launch: grid=3 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: data-race WAW @push @push severity=error
// result: out = np.tile(np.arange(32), 2)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(3) kernel(u32* out) {
    __shared__ __align__(128) u32 box[64], from[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    box[t] = 5, from[t] = t;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        if (rank == 1) ARRIVE_EXPECT(&full, 256);
    }
    FENCE_PROXY();
    CLUSTER_SYNC();
#ifdef RACY
    u32* to = box;
#else
    u32* to = box + rank / 2 * 32;
#endif
    if (rank != 1 && t == 0) PUSH(peer(to, 1), from, 128, peer(&full, 1));  /*@push*/
    if (rank == 1) {
        WAIT_CLUSTER(&full, 0);
        out[t] = box[t];
    }
    CLUSTER_SYNC();
}
