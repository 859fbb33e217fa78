// cp.reduce.async.bulk into the shared memory of rank 0, by all CTAs of a cluster of 4: a histogram that is added up without global atomics.
// launch: grid=4 block=64 arch=sm_90
// arg: x u32[4,256]=arange
// arg: out u32[64]=zeros
// bug 1: missing-wait|data-race|deadlock|barrier-misuse rank 0 expects the bytes of two peers
// bug 2: deadlock rank 0 expects the bytes of four peers
// bug 3: missing-proxy-fence the sender does not fence its counts
// bug 4: data-race|missing-proxy-fence|missing-wait no barrier between the counts and the reduction
// bug 5: missing-proxy-fence|data-race rank 0 clears its sum without a fence, behind the cluster barrier
// bug 6: missing-wait rank 0 reads the sum before the wait
// bug 7: lifetime a sender leaves without a wait: its counts are still being read
// bug 8: clean senders wait at the cluster barrier that rank 0 reaches behind its wait
// bug 9: missing-wait senders clear their counts at once
#include "../mbarrier.cuh"
#include "../cluster.cuh"
__device__ __forceinline__ void fence_async_all() { asm volatile("fence.proxy.async;" ::: "memory"); }
extern "C" __global__ void __cluster_dims__(4) __launch_bounds__(64) kernel(const u32* x, u32* out) {
    __shared__ alignas(128) u32 counts[64], sum[64];
    __shared__ alignas(8) u64 full;
    const u32 t = threadIdx.x, rank = cluster_rank();
    counts[t] = 0;
    if (BUG != 5) sum[t] = 0;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        if (rank == 0) ARRIVE_EXPECT(&full, BUG == 1 ? 512 : BUG == 2 ? 1024 : 768);
    }
    if (BUG != 5) fence_async_all();
    CLUSTER_SYNC();
    if (BUG == 5 && rank == 0) sum[t] = 0;
    for (u32 i = t; i < 256; i += 64) atomicAdd(&counts[x[rank * 256 + i] % 61], 1);
#if BUG != 3
    fence_async_all();
#endif
#if BUG != 4
    __syncthreads();
#endif
    if (rank != 0) {
        if (t == 0) PUSH_ADD(peer(sum, 0), counts, 256, peer(&full, 0));
#if BUG == 9
        __syncthreads();
        counts[t] = 0;
#endif
    } else {
#if BUG != 6
        WAIT_CLUSTER(&full, 0);
#endif
        out[t] = sum[t] + counts[t];
#if BUG == 6
        WAIT_CLUSTER(&full, 0);
#endif
    }
#if BUG == 7
    if (rank == 3) return;
    if (rank == 0) WAIT_CLUSTER(&full, 0);
#else
    CLUSTER_SYNC();
#endif
}
