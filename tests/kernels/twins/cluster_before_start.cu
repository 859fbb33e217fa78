// A CTA clears its peer's box at once; the peer may not have started. Later on the store is ordered before the peer's read.
// Not run on a chip: an access to a CTA that is not there yet is undefined.
// backends: cpu
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[128]=zeros
// expect: lifetime @store severity=error
// result: out = np.repeat([8, 7], 64)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float box[64];
    u32 t = threadIdx.x, rank = cluster_rank();
#ifndef RACY
    CLUSTER_SYNC_RELAXED();
#endif
    PUT(peer(box + t, rank ^ 1), float(rank + 7));  /*@store*/
    CLUSTER_SYNC();
    out[blockIdx.x * 64 + t] = box[t];
}
