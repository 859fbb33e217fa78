// The warps of two CTAs put sums into slots of the first one. Nothing orders them behind the threads that clear the slots. A pair of threads of
// the first CTA needs a barrier of that CTA only, the others need one of the cluster: the report names that one.
// launch: grid=2 block=64 arch=sm_90a
// arg: out f32[4]=zeros
// expect: data-race WAW @clear @put severity=error
// result: out = [1, 2, 3, 4]
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float slots[4];
    u32 t = threadIdx.x, rank = cluster_rank(), own = rank * 2 + t / 32;
    CLUSTER_SYNC();
    if (t < 4) slots[t] = 0; /*@clear*/
#ifndef RACY
    CLUSTER_SYNC();
#endif
    if (t % 32 == 0) PUT(peer(&slots[own], 0), own + 1.0f); /*@put*/
    CLUSTER_SYNC();
    if (rank == 0 && t < 4) out[t] = slots[t];
}
