// One barrier for the cluster, the leader's: all CTAs arrive at it, and only the leader waits. The others have the same bytes in their
// shared memory, never initialised; an arrival there, mapa forgotten, is at no barrier.
// Not run on a chip: the leader would wait for ever.
// backends: cpu
// launch: grid=4 block=64 arch=sm_90
// arg: out f32[64]=zeros
// expect: barrier-misuse @arrive severity=error
// allow: deadlock
// result: out = np.arange(64) * 4 + 6
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(4) kernel(float* out) {
    __shared__ float part[4][64];
    __shared__ u64 done;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (rank == 0 && t == 0) {
        INIT(&done, 4 * 64);
        FENCE_INIT();
    }
    CLUSTER_SYNC_RELAXED();
    PUT(peer(part[rank] + t, 0), float(rank + t));
#ifdef RACY
    u32 owner = rank == 3 ? 3 : 0;
#else
    u32 owner = 0;
#endif
    ARRIVE_THERE(peer(&done, owner));  /*@arrive*/
    if (rank == 0) {
        WAIT_CLUSTER(&done, 0);
        out[t] = part[0][t] + part[1][t] + part[2][t] + part[3][t];
    }
    CLUSTER_SYNC_RELAXED();
}
