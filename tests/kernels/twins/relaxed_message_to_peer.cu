// R-MO1 in distributed shared memory: a CTA hands a pair of values to its peer through relaxed accesses. The fence between the pair and the flag has
// .cta scope, and leaves out the peer. No access is weak, so nothing races.
//
// launch: grid=2 block=32 arch=sm_90
// arg:    out u32[2]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.uint32([7, 9])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
#define STORE(form, there, ...) asm volatile("st.relaxed.cluster.shared::cluster." form ::"r"(there), __VA_ARGS__ : "memory")
extern "C" __global__ void __cluster_dims__(2) kernel(u32* out) {
    __shared__ u32 flag;
    __shared__ alignas(8) u32 data[2];
    if (threadIdx.x == 0) flag = data[0] = data[1] = 0;
    CLUSTER_SYNC();
    if (threadIdx.x == 0 && cluster_rank() == 0) {
        STORE("v2.u32 [%0], {%1, %2};", peer(data, 1), "r"(7), "r"(9));  /*@store*/
#ifdef RACY
        __threadfence_block();
#else
        __threadfence();
#endif
        STORE("u32 [%0], %1;", peer(&flag, 1), "r"(1));
    } else if (threadIdx.x == 0) {
        u32 seen, one, other;
        do asm volatile("ld.relaxed.cluster.shared.u32 %0, [%1];" : "=r"(seen) : "r"((u32)__cvta_generic_to_shared(&flag)) : "memory");
        while (!seen);
        __threadfence();
        asm volatile("ld.relaxed.cluster.shared.v2.u32 {%0, %1}, [%2];" : "=r"(one), "=r"(other) : "r"((u32)__cvta_generic_to_shared(data)) : "memory");  /*@load*/
        out[0] = one, out[1] = other;
    }
    CLUSTER_SYNC();
}
