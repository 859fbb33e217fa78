// R-CL: one lane writes into another CTA behind the arrival of its warp at the barrier of the cluster: no lane may read it behind the wait.
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[128]=zeros
// expect: data-race RAW @put @get severity=error
// result: out = np.repeat(np.array([2, 1], np.float32), 64)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float of_peer;
    u32 rank = cluster_rank(), t = threadIdx.x;
    CLUSTER_SYNC();
#ifdef RACY
    CLUSTER_ARRIVE();
    if (t == 0) PUT(peer(&of_peer, rank ^ 1), rank + 1.0f);  /*@put*/
#else
    if (t == 0) PUT(peer(&of_peer, rank ^ 1), rank + 1.0f);
    CLUSTER_ARRIVE();
#endif
    CLUSTER_WAIT();
    out[rank * 64 + t] = of_peer;  /*@get*/
    CLUSTER_SYNC();
}
