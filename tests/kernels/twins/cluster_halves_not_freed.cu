// Each CTA of a pair brings half of a tile to both. The producers do not wait until the tile is free, so they announce the next one while
// the half of the other CTA is still to come: too many arrivals follow from the missing wait.
// On an H200 the chip stops the launch with a failure when arrivals exceed the count, before anything can be read back.
// backends: cpu
// launch: grid=2 block=64 arch=sm_90a
// arg: x f32[4,64]=random
// arg: out f32[2,32]=zeros
// expect: missing-wait|data-race severity=error
// allow: missing-wait
// allow: data-race
// allow: deadlock
// allow: barrier-misuse
// allow: lifetime
// result: out = np.tile(x.reshape(4, 2, 32).sum((0, 1)), (2, 1))
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const float* x, float* out) {
    __shared__ alignas(16) float tile[64];
    __shared__ u64 full, empty;
    const u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 64);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    float sum = 0;
#pragma unroll 1
    for (u32 k = 0; k < 4; k++) {
        if (t == 32) {
#ifndef RACY
            WAIT_CLUSTER(&empty, (k & 1) ^ 1);
#endif
            ARRIVE_EXPECT(&full, 256);
            MULTICAST(&tile[32 * rank], x + 64 * k + 32 * rank, 128, &full, 3);
        } else if (t < 32) {
            WAIT_CLUSTER(&full, k & 1);
            sum += tile[t] + tile[t + 32];
            ARRIVE_THERE(peer(&empty, 0));
            ARRIVE_THERE(peer(&empty, 1));
        }
    }
    if (t < 32) out[32 * rank + t] = sum;
    CLUSTER_SYNC();
}
