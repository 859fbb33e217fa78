// Half of the warps wait at the barrier of the cluster without having arrived: it waits for all threads that have not exited.
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=2 block=128 arch=sm_90
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: deadlock @wait severity=error
// result: out = np.concatenate([x[255:127:-1], x[127::-1]])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ float box[128];
    u32 t = threadIdx.x, rank = cluster_rank();
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    PUT(peer(box + 127 - t, rank ^ 1), x[blockIdx.x * 128 + t]);
#ifdef RACY
    if (t < 64)
#endif
        CLUSTER_ARRIVE();
    CLUSTER_WAIT();  /*@wait*/
    out[blockIdx.x * 128 + t] = box[t];
}
