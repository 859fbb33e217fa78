// An mbarrier that another CTA arrives at: a relaxed barrier of the cluster publishes its initialisation after fence.mbarrier_init only.
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[64]=zeros
// expect: barrier-misuse @init @arrive severity=error
// expect: barrier-misuse @init @wait severity=error
// result: out = np.arange(64) + 1
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float box[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 64);  /*@init*/
#ifndef RACY
        FENCE_INIT();
#endif
    }
    CLUSTER_SYNC_RELAXED();
    if (rank == 0) {
        PUT(peer(box + t, 1), float(t + 1));
        ARRIVE_THERE(peer(&full, 1));  /*@arrive*/
    } else {
        WAIT_CLUSTER(&full, 0);  /*@wait*/
        out[t] = box[t];
    }
    CLUSTER_SYNC_RELAXED();  // the arrivals have reached a CTA that is still there
}
