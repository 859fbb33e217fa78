// An arrival at a barrier of another CTA is of .cta scope where none is given: it does not reach who waits there.
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[64]=zeros
// expect: scope @store @read severity=error
// result: out = np.arange(64) + 1
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float box[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 64);
        FENCE_INIT();
    }
    CLUSTER_SYNC_RELAXED();
    if (rank == 0) {
        PUT(peer(box + t, 1), float(t + 1));  /*@store*/
#ifdef RACY
        ARRIVE_THERE_CTA(peer(&full, 1));
#else
        ARRIVE_THERE(peer(&full, 1));
#endif
    } else {
        WAIT_CLUSTER(&full, 0);
        out[t] = box[t];  /*@read*/
    }
    CLUSTER_SYNC_RELAXED();  // the arrivals have reached a CTA that is still there
}
