// Halo exchange in a cluster of 2 by st.async: each CTA announces the bytes, the neighbour sends its edge.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[2,64]=random
// arg: out f32[2,64]=zeros
// result: out = x + x[::-1, ::-1]
// bug 1: deadlock twice the bytes are expected
// bug 2: barrier-misuse|missing-wait|deadlock half of the bytes are expected
// bug 3: missing-wait|data-race no wait
// bug 4: lifetime|barrier-misuse no cluster barrier behind the init: __syncthreads
// bug 5: clean nobody waits at the end: all that comes in was waited for
// bug 6: missing-wait|data-race|barrier-misuse the wait has parity 1
// bug 7: lifetime|missing-wait st.shared::cluster and remote arrive without bytes, peer exits
// bug 8: data-race|scope|missing-wait plain stores and a remote arrival of cta scope
// bug 9: clean plain stores and a remote arrival of cluster scope
// bug 10: data-race|missing-wait|scope plain stores and a relaxed remote arrival
// bug 11: scope|data-race|missing-wait warn plain stores, remote arrival of cluster scope, wait of cta scope
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(64) kernel(const float* x, float* out) {
    __shared__ alignas(16) float halo[64];
    __shared__ alignas(8) u64 bar;
    const u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&bar, BUG >= 7 ? 64 : 1);
        FENCE_INIT();
    }
#if BUG == 4
    __syncthreads();
#else
    CLUSTER_SYNC();
#endif
#if BUG < 7
    if (t == 0) ARRIVE_EXPECT(&bar, BUG == 1 ? 512 : BUG == 2 ? 128 : 256);
    PUT_ASYNC(peer(&halo[63 - t], rank ^ 1), __float_as_uint(x[rank * 64 + t]), peer(&bar, rank ^ 1));
#else
    PUT(peer(&halo[63 - t], rank ^ 1), x[rank * 64 + t]);
#if BUG == 8
    ARRIVE_THERE_CTA(peer(&bar, rank ^ 1));
#elif BUG == 10
    ARRIVE_THERE_RELAXED(peer(&bar, rank ^ 1));
#else
    ARRIVE_THERE(peer(&bar, rank ^ 1));
#endif
#endif
#if BUG == 3 || BUG == 7
#elif BUG == 6
    WAIT_CLUSTER(&bar, 1);
#elif BUG == 11
    WAIT(&bar, 0);
#else
    WAIT_CLUSTER(&bar, 0);
#endif
    out[rank * 64 + t] = x[rank * 64 + t] + halo[t];
#if BUG != 5 && BUG != 7
    CLUSTER_SYNC();
#endif
}
