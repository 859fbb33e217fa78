// Each CTA of a pair sends 32 words to the other by st.async. The barrier expects the bytes of 31: it completes with one word on its way, and the
// last one counts for the next phase (R-M7). Each lane's store completes its own 4 bytes (ISA "st.async").
// launch: grid=2 block=32 arch=sm_90a
// arg: x u32[64]=random
// arg: out u32[64]=zeros
// expect: barrier-misuse @push @expect severity=error
// allow: missing-wait RAW @push @read
// allow: lifetime @push
// result: out = x.reshape(2, 32)[::-1, ::-1].ravel()
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const u32* x, u32* out) {
    __shared__ u32 v[32];
    __shared__ alignas(8) u64 bar;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&bar, 1);
        FENCE_INIT();
#ifdef RACY
        ARRIVE_EXPECT(&bar, 124);  /*@expect*/
#else
        ARRIVE_EXPECT(&bar, 128);  /*@expect*/
#endif
    }
    CLUSTER_SYNC();
    PUT_ASYNC(peer(&v[t], rank ^ 1), x[rank * 32 + t], peer(&bar, rank ^ 1));  /*@push*/
    WAIT_CLUSTER(&bar, 0);
    out[rank * 32 + t] = v[31 - t];  /*@read*/
    CLUSTER_SYNC();
}
