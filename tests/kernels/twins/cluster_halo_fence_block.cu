// Each CTA puts the edge of its tile into its neighbour's halo. The fence before the relaxed arrival is __threadfence_block(), of .cta scope.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: scope RAW @put @read severity=error
// result: out = x + np.concatenate([x[64:], x[:64]])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ float halo[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank(), i = blockIdx.x * 64 + t;
    if (t == 0) {
        INIT(&full, 64);
        FENCE_INIT();
    }
    CLUSTER_SYNC_RELAXED();
    PUT(peer(&halo[t], rank ^ 1), x[i]);  /*@put*/
#ifdef RACY
    __threadfence_block();
#else
    __threadfence();
#endif
    ARRIVE_THERE_RELAXED(peer(&full, rank ^ 1));
    WAIT_CLUSTER(&full, 0);
    out[i] = x[i] + halo[t];  /*@read*/
    CLUSTER_SYNC_RELAXED();
}
