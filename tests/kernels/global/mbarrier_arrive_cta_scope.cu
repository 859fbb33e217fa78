// R-GM3: an mbarrier of another CTA announces data in global memory. The arrival is of .cta scope: it releases to threads of its own CTA only.
//
// launch: grid=2 block=32 arch=sm_90
// arg:    data u32[1]=zeros
// arg:    out u32[1]=zeros
// expect: scope @store @load severity=error
// result: out = np.uint32([5])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(u32* data, u32* out) {
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
    }
    CLUSTER_SYNC_RELAXED();
    if (t == 0 && rank == 0) {
        data[0] = 5;  /*@store*/
#ifdef RACY
        ARRIVE_THERE_CTA(peer(&full, 1));
#else
        ARRIVE_THERE(peer(&full, 1));
#endif
    } else if (t == 0) {
        WAIT_CLUSTER(&full, 0);
        out[0] = data[0];  /*@load*/
    }
    CLUSTER_SYNC_RELAXED();
}
