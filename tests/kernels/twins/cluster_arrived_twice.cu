// A thread arrives twice at the barrier of the cluster before it waits: it may do so only once in a phase (9.7.13.3).
// Not run on a chip: what it does is not defined.
// backends: cpu
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[128]=zeros
// expect: barrier-misuse @again severity=error
// allow: data-race RAW @put @read
// allow: lifetime @put
// result: out = np.concatenate([np.arange(64) + 100, np.arange(64)])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float box[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    CLUSTER_ARRIVE();
#ifdef RACY
    CLUSTER_ARRIVE();  /*@again*/
#endif
    CLUSTER_WAIT();
    PUT(peer(box + t, rank ^ 1), float(t + 100 * rank));  /*@put*/
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    out[blockIdx.x * 64 + t] = box[t];  /*@read*/
}
