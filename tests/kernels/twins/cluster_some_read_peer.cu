// Some threads of a CTA read their peer's shared memory in a loop, and the peer may have ended. The barrier belongs behind the branch.
// Not run on a chip: the memory may belong to somebody else by then, or the launch fail.
// backends: cpu
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[32]=zeros
// expect: lifetime @read severity=error
// result: out = np.concatenate([2 * np.arange(16) + 100, 2 * np.arange(16) + 132])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float mine[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    mine[t] = float(t + 100 * rank);
    CLUSTER_SYNC();
    float sum = 0;
    if (t < 16) {
        for (u32 r = 0; r < 2; r++) {
            float value;
            GET(value, peer(mine + 16 * rank + t, r));  /*@read*/
            sum += value;
        }
    }
#ifndef RACY
    CLUSTER_SYNC_RELAXED();
#endif
    if (t < 16) out[blockIdx.x * 16 + t] = sum;
}
