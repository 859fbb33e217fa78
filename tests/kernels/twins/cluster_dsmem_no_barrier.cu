// A CTA reads its peer's tile with no barrier of the cluster since the peer has written it; __syncthreads is for one CTA.
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[128]=zeros
// expect: data-race RAW @store @read severity=error
// allow: uninitialized-read @read
// result: out = np.concatenate([np.arange(64) + 100, np.arange(64)])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float mine[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    CLUSTER_SYNC_RELAXED();  // both have started
    mine[t] = float(t + 100 * rank);  /*@store*/
#ifdef RACY
    __syncthreads();
#else
    CLUSTER_SYNC();
#endif
    float value;
    GET(value, peer(mine + t, rank ^ 1));  /*@read*/
    CLUSTER_SYNC_RELAXED();  // neither ends before the other has read
    out[blockIdx.x * 64 + t] = value;
}
