// A store to the peer's shared memory that only a relaxed arrival at the cluster's barrier announces: it publishes nothing.
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[128]=zeros
// expect: data-race RAW @store @read severity=error
// result: out = np.concatenate([np.arange(64) + 100, np.arange(64)])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float box[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    CLUSTER_SYNC_RELAXED();
    PUT(peer(box + t, rank ^ 1), float(t + 100 * rank));  /*@store*/
#ifdef RACY
    CLUSTER_ARRIVE_RELAXED();
#else
    CLUSTER_ARRIVE();
#endif
    CLUSTER_WAIT();
    out[blockIdx.x * 64 + t] = box[t];  /*@read*/
}
