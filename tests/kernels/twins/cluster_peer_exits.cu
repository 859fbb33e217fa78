// A CTA that reads its peer's shared memory while the peer may have ended: nobody waits for the reader.
// Not run on a chip: the memory may belong to somebody else by then, or the launch fail.
// backends: cpu
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[128]=zeros
// expect: lifetime @read severity=error
// result: out = np.concatenate([np.arange(64) + 100, np.arange(64)])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float mine[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    mine[t] = float(t + 100 * rank);
    CLUSTER_SYNC();
    float value;
    GET(value, peer(mine + t, rank ^ 1));  /*@read*/
#ifndef RACY
    CLUSTER_SYNC_RELAXED();
#endif
    out[blockIdx.x * 64 + t] = value;
}
