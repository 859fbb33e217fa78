// R-SR1: a fence with .sync_restrict::shared::cta publishes what is in the own CTA's shared memory, and no store to that of another CTA.
// The peer may read what a thread has stored into its own CTA, and not what the thread has stored into the peer's (`@load`).
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[128]=zeros
// expect: data-race RAW @push @load severity=error
// result: out = np.concatenate([2 * np.arange(64) + 300, 2 * np.arange(64)]).astype(np.float32)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
#ifdef RACY
#define RELEASE "fence.release.sync_restrict::shared::cta.cluster;"
#else
#define RELEASE "fence.acq_rel.cluster;"
#endif
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ u64 full;
    __shared__ float own[64], pushed[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 64);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    own[t] = float(t + 200 * rank);
    PUT(peer(pushed + t, rank ^ 1), float(t + 100 * rank));  /*@push*/
    asm volatile(RELEASE ::: "memory");
    ARRIVE_THERE_RELAXED(peer(&full, rank ^ 1));
    WAIT_AS("try_wait.parity.relaxed.cluster", &full, "r", (u32)0);
    asm volatile("fence.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
    float pulled;
    GET(pulled, peer(own + t, rank ^ 1));
    out[blockIdx.x * 64 + t] = pulled + pushed[t];  /*@load*/
    CLUSTER_SYNC();
}
