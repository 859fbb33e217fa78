// D5: complete_tx of a copy that another CTA has issued is a release at .cluster scope; a wait of .cta scope does not include its thread.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// policy: isa
// expect: scope RAW @push @read severity=warning
// result: out = np.arange(64)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(u32* out) {
    __shared__ __align__(128) u32 box[64], from[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    box[t] = 5, from[t] = t;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        if (rank == 1) ARRIVE_EXPECT(&full, 256);
    }
    FENCE_PROXY();
    CLUSTER_SYNC();
    if (rank == 0 && t == 0) PUSH(peer(box, 1), from, 256, peer(&full, 1));  /*@push*/
    if (rank == 1) {
#ifdef RACY
        WAIT(&full, 0);
#else
        WAIT_CLUSTER(&full, 0);
#endif
        out[t] = box[t];  /*@read*/
    }
    CLUSTER_SYNC();
}
