// A tile for both CTAs: the one that issues the copy waits for its barrier, the other one reads before it does.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[128]=zeros
// expect: missing-wait RAW @load @read severity=error
// allow: uninitialized-read @read
// result: out = np.tile(x, 2)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ __align__(128) float tile[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        ARRIVE_EXPECT(&full, sizeof tile);
    }
    CLUSTER_SYNC();
    if (rank == 0 && t == 0) MULTICAST(tile, x, sizeof tile, &full, 3);  /*@load*/
#ifdef RACY
    if (rank == 0) WAIT(&full, 0);
#else
    WAIT(&full, 0);
#endif
    float value = tile[t];  /*@read*/
    WAIT(&full, 0);
    CLUSTER_SYNC_RELAXED();
    out[blockIdx.x * 64 + t] = value;
}
