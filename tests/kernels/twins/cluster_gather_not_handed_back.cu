// Four CTAs exchange rows by st.async in each round, in one box each. Under RACY nothing tells a sender that the box was read (R-M10, section 4).
// launch: grid=4 block=64 arch=sm_90a
// arg: x u32[4,4,64]=arange
// arg: out u32[4,64]=zeros
// arg: rounds i32=4
// expect: data-race WAR @read @send severity=error
// allow: missing-wait severity=error
// result: out = np.stack([x.sum(axis=(0, 1))[::-1]] * 4)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(4) kernel(const u32* x, u32* out, int rounds) {
    __shared__ alignas(16) u32 box[4][64];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank(), sum = 0;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    for (int i = 0; i < rounds; i++) {
        if (t == 0) ARRIVE_EXPECT(&full, 1024);
        for (u32 to = 0; to < 4; to++) PUT_ASYNC(peer(&box[rank][t], to), x[(4 * i + rank) * 64 + t], peer(&full, to));  /*@send*/
        WAIT_CLUSTER(&full, i & 1);
        for (u32 of = 0; of < 4; of++) sum += box[of][63 - t];  /*@read*/
#ifndef RACY
        CLUSTER_SYNC();
#endif
    }
    out[64 * rank + t] = sum;
#ifdef RACY
    CLUSTER_SYNC();
#endif
}
