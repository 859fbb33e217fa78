// A CTA sends its neighbour two values, one after the other, into one slot: nothing says that the first one has been read. All bytes are
// announced, though the second ones may come before they are.
// launch: grid=2 block=32 arch=sm_90
// arg: x u32[2,32]=random
// arg: out u32[32]=zeros
// expect: data-race WAR @read @send severity=error
// allow: missing-wait @send @send
// allow: barrier-misuse
// result: out = x.sum(0, dtype=np.uint32)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const u32* x, u32* out) {
    __shared__ u32 slot[32];
    __shared__ u64 full, empty;
    const u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 32);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    u32 sum = 0;
#pragma unroll 1
    for (u32 k = 0; k < 2; k++) {
        if (rank == 0) {
#ifndef RACY
            WAIT_CLUSTER(&empty, k ^ 1);
#endif
            PUT_ASYNC(peer(&slot[t], 1), x[32 * k + t], peer(&full, 1));  /*@send*/
        } else {
            if (t == 0) ARRIVE_EXPECT(&full, 128);
            WAIT_CLUSTER(&full, k);
            sum += slot[t];  /*@read*/
            ARRIVE_THERE(peer(&empty, 0));
        }
    }
    if (rank == 1) out[t] = sum;
    CLUSTER_SYNC();
}
