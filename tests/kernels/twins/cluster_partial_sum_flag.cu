// Partial sums go to the leader of the cluster, and a flag after them, which is released at .cta scope.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[64]=zeros
// expect: scope RAW @put @read severity=error
// expect: data-race|scope RAW @flag @poll severity=error
// result: out = x[:64] + x[64:]
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ float partial[64];
    __shared__ u32 ready[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    float value = x[blockIdx.x * 64 + t];
    ready[t] = 0;
    CLUSTER_SYNC();
    if (rank == 1) {
        PUT(peer(&partial[t], 0), value);  /*@put*/
#ifdef RACY
        PUT_FLAG("cta", peer(&ready[t], 0), 1);  /*@flag*/
#else
        PUT_FLAG("cluster", peer(&ready[t], 0), 1);
#endif
    } else {
        u32 seen;
        do GET_FLAG(seen, peer(&ready[t], 0)); while (!seen);  /*@poll*/
        out[t] = value + partial[t];  /*@read*/
    }
    CLUSTER_SYNC_RELAXED();
}
