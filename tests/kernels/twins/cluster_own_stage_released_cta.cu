// CTA 1 reads its own memory, which CTA 0 fills, and gives it back with the default scope of an arrival, .cta. The read is over by then, and
// nothing has to become visible: a bug by the ISA, and what CUTLASS's pipelines in clusters do.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[4,64]=arange
// arg: out f32[64]=zeros
// expect: scope WAR @read @refill severity=warning
// result: out = x.sum(0)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
enum { STAGES = 2, STEPS = 4 };
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ float stage[STAGES][64];
    __shared__ u64 full[STAGES], empty[STAGES];
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            INIT(&full[s], 64);
            INIT(&empty[s], 64);
        }
        FENCE_INIT();
    }
    CLUSTER_SYNC_RELAXED();
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < STEPS; k++) {
        int s = k % STAGES, round = k / STAGES;
        if (rank == 0) {
            if (round) WAIT_CLUSTER(&empty[s], (round - 1) & 1);
            PUT(peer(&stage[s][t], 1), x[64 * k + t]);  /*@refill*/
            ARRIVE_THERE(peer(&full[s], 1));
        } else {
            WAIT_CLUSTER(&full[s], round & 1);
            sum += stage[s][t];  /*@read*/
#ifdef RACY
            ARRIVE_THERE_CTA(peer(&empty[s], 0));
#else
            ARRIVE_THERE(peer(&empty[s], 0));
#endif
        }
    }
    CLUSTER_SYNC_RELAXED();
    if (rank == 1) out[t] = sum;
}
