// CTA 0 multicasts to a CTA that may not have initialised its barrier yet: __syncthreads is for the barriers of one CTA.
// Not run on a chip: bytes that reach memory which is no barrier yet are lost, and the peer waits for ever.
// backends: cpu
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[128]=zeros
// expect: barrier-misuse @load severity=error
// allow: deadlock
// result: out = np.tile(x, 2)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ __align__(128) float tile[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    CLUSTER_SYNC_RELAXED();  // both have started
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        ARRIVE_EXPECT(&full, sizeof tile);
    }
#ifdef RACY
    __syncthreads();
#else
    CLUSTER_SYNC_RELAXED();
#endif
    if (rank == 0 && t == 0) MULTICAST(tile, x, sizeof tile, &full, 3);  /*@load*/
    WAIT(&full, 0);
    out[blockIdx.x * 64 + t] = tile[t];
    CLUSTER_SYNC_RELAXED();
}
