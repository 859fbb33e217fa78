// A split barrier of the cluster: the read of what the peer has stored stands between the arrival and the wait. The arrival makes no thread wait.
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[128]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = np.concatenate([np.arange(64) + 1, np.arange(64)]) * 2
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float given[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    CLUSTER_SYNC_RELAXED();
    PUT(peer(given + t, rank ^ 1), float(rank + t));  /*@write*/
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    float factor = 2.0f;
#ifdef RACY
    float value = given[t];  /*@read*/
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#else
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    float value = given[t];
#endif
    out[rank * 64 + t] = value * factor;
}
