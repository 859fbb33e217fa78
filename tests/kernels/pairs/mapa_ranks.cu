// All-to-all in a cluster of 4: each CTA stores a row to each peer by mapa, with ranks computed in several ways.
// launch: grid=4x2 block=32 arch=sm_90
// arg: x f32[8,4,32]=random
// arg: out f32[8,4,32]=zeros
// bug 1: data-race|uninitialized-read the slot is of the receiver's rank, not of the sender's
// bug 2: out-of-bounds|lifetime|uninitialized-read|data-race the number in the grid in place of the rank in the cluster
// bug 3: data-race|uninitialized-read cluster barrier relaxed, without a fence
// bug 4: lifetime|data-race|uninitialized-read no cluster barrier behind the stores
// bug 5: clean fence.acq_rel.cluster before the relaxed arrival
// bug 6: lifetime no cluster barrier before the first store
// bug 7: data-race the second round overwrites slots that are still read
// bug 8: clean a barrier between the rounds
// bug 9: clean the own slot by an ordinary store
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(4) __launch_bounds__(32) kernel(const float* x, float* out) {
    __shared__ float slots[4][32];
    const u32 t = threadIdx.x, rank = cluster_rank(), cta = blockIdx.y * 4 + blockIdx.x;
#if BUG != 6
    CLUSTER_SYNC_RELAXED();
#endif
    const u32 me = rank;
#pragma unroll 1
    for (u32 round = 0; round < (BUG == 7 || BUG == 8 ? 2 : 1); round++) {
        for (u32 to = 0; to < 4; to++) {
            const float v = x[(cta * 4 + to) * 32 + t];
            const u32 slot = BUG == 1 ? to : me;
#if BUG == 9
            if (to == rank) slots[slot][t] = v;
            else
#endif
            PUT(peer(&slots[slot][t], BUG == 2 ? blockIdx.y * 4 + to : to), v);
        }
#if BUG == 3 || BUG == 5
#if BUG == 5
        asm volatile("fence.acq_rel.cluster;" ::: "memory");
#endif
        CLUSTER_SYNC_RELAXED();
#elif BUG == 4
        __syncthreads();
#else
        CLUSTER_SYNC();
#endif
        for (u32 from = 0; from < 4; from++) out[(cta * 4 + from) * 32 + t] = slots[from][31 - t];
#if BUG == 8
        CLUSTER_SYNC();
#endif
    }
}
