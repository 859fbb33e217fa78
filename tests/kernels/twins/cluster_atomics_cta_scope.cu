// Two CTAs add to one word of CTA 0. An atomic of .cta scope is not atomic for another CTA, even where it is the word's own.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[1]=zeros
// expect: scope|data-race WAW @own @other severity=error
// result: out = np.array([64 + 2 * 64])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(u32* out) {
    __shared__ u32 sum;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) sum = 0;
    CLUSTER_SYNC();
    if (rank == 0) {
#ifdef RACY
        ADD_AS("cta", peer(&sum, 0), 1);  /*@own*/
#else
        ADD_AS("cluster", peer(&sum, 0), 1);
#endif
    } else {
        ADD_AS("cluster", peer(&sum, 0), 2);  /*@other*/
    }
    CLUSTER_SYNC();
    if (rank == 0 && t == 0) *out = sum;
}
