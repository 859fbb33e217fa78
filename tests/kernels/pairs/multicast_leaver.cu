// A cluster of 4: rank 0 multicasts a table to all; a CTA without work leaves early, as in kernels with a tail.
// launch: grid=4 block=32 arch=sm_90
// arg: x f32[64]=random
// arg: out f32[4,32]=zeros
// arg: n i32=4
// bug 1: lifetime rank 3 returns before the copy has come
// bug 2: clean rank 3 waits for the copy, and returns
// bug 3: lifetime|barrier-misuse no cluster barrier behind init
// bug 4: deadlock rank 3 does not expect the bytes, and waits
// bug 5: clean rank 3 is not in the mask, and returns behind the first cluster barrier
// bug 6: lifetime the mask is without rank 3, which reads a peer's table and finds it gone
// bug 7: lifetime|missing-wait everybody reads the neighbour's table, no cluster barrier at the end
// bug 8: clean the same with a cluster barrier behind the waits and one at the end
// bug 9: missing-wait|data-race the same without the barrier behind the waits
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(4) __launch_bounds__(32) kernel(const float* x, float* out, int n) {
    __shared__ alignas(128) float table[64];
    __shared__ alignas(8) u64 full;
    const u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        if (!(BUG == 4 && rank == 3) && !((BUG == 5 || BUG == 6) && rank == 3)) ARRIVE_EXPECT(&full, 256);
    }
#if BUG == 3
    __syncthreads();
#else
    CLUSTER_SYNC();
#endif
    if (rank == 0 && t == 0) MULTICAST(table, x, 256, &full, BUG == 5 || BUG == 6 ? 7 : 15);
#if BUG == 1 || BUG == 5
    if (rank == 3) return;
#elif BUG == 2
    if (rank == 3) {
        WAIT_CLUSTER(&full, 0);
        return;
    }
#elif BUG == 6
    if (rank == 3) {
        float v;
        GET(v, peer(&table[t], 1));
        out[96 + t] = v;
        return;
    }
#endif
    WAIT_CLUSTER(&full, 0);
#if BUG >= 7
    float v;
#if BUG != 9
    CLUSTER_SYNC();
#endif
    GET(v, peer(&table[t], (rank + 1) & 3));
    out[rank * 32 + t] = v;
#if BUG != 7
    CLUSTER_SYNC();
#endif
#else
    out[rank * 32 + t] = table[t] + table[t + 32];
#endif
}
