// A token ring over a cluster of 4: each CTA gets 64 words by st.async, adds its own, and passes them on; bytes announced for each round.
// launch: grid=4 block=64 arch=sm_90
// arg: x u32[4,64]=arange
// arg: out u32[64]=zeros
// result: out = x.sum(0, dtype=np.uint32)
// bug 1: deadlock 128 bytes too many are announced
// bug 2: barrier-misuse|missing-wait|deadlock 128 bytes too few are announced
// bug 3: missing-wait the words are read before the wait
// bug 4: clean no cluster barrier at the end: each CTA has waited for all that comes to it
// bug 5: deadlock|barrier-misuse|lifetime|missing-wait|uninitialized-read the barrier's address is of the own CTA
// bug 6: clean the announcement comes behind the cluster barrier, by the receiver, at once
// bug 7: lifetime|barrier-misuse no cluster barrier behind the init
// bug 8: data-race|missing-wait|uninitialized-read an ordinary store in place of one st.async
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(4) __launch_bounds__(64) kernel(const u32* x, u32* out) {
    __shared__ alignas(16) u32 token[64];
    __shared__ alignas(8) u64 full;
    const u32 t = threadIdx.x, rank = cluster_rank(), next = (rank + 1) & 3;
    const u32 bytes = BUG == 1 ? 384 : BUG == 2 ? 128 : BUG == 8 && rank == 2 ? 252 : 256;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        if (BUG != 6) ARRIVE_EXPECT(&full, bytes);
    }
#if BUG == 7
    __syncthreads();
#else
    CLUSTER_SYNC();
#endif
    if (BUG == 6 && t == 0) ARRIVE_EXPECT(&full, bytes);
    const u32 mine = x[rank * 64 + t];
    const u32 to = peer(&token[t], next), bar = BUG == 5 ? shared(&full) : peer(&full, next);
    if (rank == 0) PUT_ASYNC(to, mine, bar);
#if BUG == 3
    const u32 early = ((volatile u32*)token)[t];
#endif
    WAIT_CLUSTER(&full, 0);
#if BUG == 3
    const u32 sum = early;
#else
    const u32 sum = token[t];
#endif
    if (rank == 0) out[t] = sum;
    else {
#if BUG == 8
        if (rank == 1 && t == 5) asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(sum + mine) : "memory");
        else
#endif
        PUT_ASYNC(to, sum + mine, bar);
    }
#if BUG != 4
    CLUSTER_SYNC();
#endif
}
