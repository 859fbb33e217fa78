// Every thread waits at the barrier of the cluster a second time, and nobody has arrived again.
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[128]=zeros
// expect: deadlock @wait severity=error
// result: out = np.concatenate([np.arange(64) + 100, np.arange(64)])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float box[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    PUT(peer(box + t, rank ^ 1), float(t + 100 * rank));
#ifndef RACY
    CLUSTER_ARRIVE();
#endif
    CLUSTER_WAIT();  /*@wait*/
    out[blockIdx.x * 64 + t] = box[t];
}
