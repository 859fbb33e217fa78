// R-MO1 in shared memory, the release side: one warp hands a pair of values to another one through relaxed accesses, and nothing publishes the
// pair before the flag. No access is weak, so nothing races.
//
// launch: grid=1 block=64 arch=sm_90
// arg:    out u32[2]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.uint32([7, 9])
#define AT(p) ((unsigned)__cvta_generic_to_shared(p))
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned flag;
    __shared__ alignas(8) unsigned data[2];
    if (threadIdx.x == 0) flag = data[0] = data[1] = 0;
    __syncthreads();
    if (threadIdx.x == 32) {
        asm volatile("st.relaxed.cta.shared.v2.u32 [%0], {%1, %2};" ::"r"(AT(data)), "r"(7), "r"(9) : "memory");  /*@store*/
#ifndef RACY
        __threadfence_block();
#endif
        asm volatile("st.relaxed.cta.shared.u32 [%0], 1;" ::"r"(AT(&flag)) : "memory");
    } else if (threadIdx.x == 0) {
        unsigned seen, one, other;
        do asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(AT(&flag)) : "memory");
        while (!seen);
        __threadfence_block();
        asm volatile("ld.relaxed.cta.shared.v2.u32 {%0, %1}, [%2];" : "=r"(one), "=r"(other) : "r"(AT(data)) : "memory");  /*@load*/
        out[0] = one, out[1] = other;
    }
}
