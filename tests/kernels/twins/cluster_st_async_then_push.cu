// st.async writes through the generic proxy (ISA 9.7.9.12 names no other): a bulk copy of what it has brought needs a proxy fence.
// launch: grid=2 block=64 arch=sm_90
// arg: out u32[64]=zeros
// expect: missing-proxy-fence RAW @async @push severity=error
// result: out = np.full(64, 1)
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
        ARRIVE_EXPECT(&full, 256);
    }
    FENCE_PROXY();
    CLUSTER_SYNC();
    if (rank == 0) PUT_ASYNC(peer(from + t, 1), 1u, peer(&full, 1));  /*@async*/
    if (rank == 1) {
        WAIT_CLUSTER(&full, 0);
#ifndef RACY
        FENCE_PROXY();
#endif
        __syncthreads();
        if (t == 0) PUSH(peer(box, 0), from, 256, peer(&full, 0));  /*@push*/
    } else {
        WAIT_CLUSTER(&full, 0);
        out[t] = box[t];
    }
    CLUSTER_SYNC();
}
