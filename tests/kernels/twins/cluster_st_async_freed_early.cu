// One CTA sends rows by st.async into the only mailbox of its peer, which hands it back: under RACY before it has read the row.
// launch: grid=2 block=32 arch=sm_90a
// arg: x u32[128]=arange
// arg: out u32[128]=zeros
// expect: data-race WAR @read @send severity=error
// result: out = x.reshape(4, 32)[:, ::-1].reshape(-1)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const u32* x, u32* out) {
    __shared__ alignas(16) u32 box[32];
    __shared__ u64 full, empty;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 1);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    for (int i = 0; i < 4; i++) {
        if (rank == 0) {
            if (i) WAIT_CLUSTER(&empty, (i - 1) & 1);
            PUT_ASYNC(peer(&box[t], 1), x[i * 32 + t], peer(&full, 1));  /*@send*/
        } else {
            if (t == 0) ARRIVE_EXPECT(&full, 128);
            WAIT_CLUSTER(&full, i & 1);
#ifdef RACY
            if (t == 0) ARRIVE_THERE(peer(&empty, 0));
#endif
            out[i * 32 + t] = box[31 - t];  /*@read*/
#ifndef RACY
            __syncwarp();
            if (t == 0) ARRIVE_THERE(peer(&empty, 0));
#endif
        }
    }
    CLUSTER_SYNC();
}
