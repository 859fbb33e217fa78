// Two CTAs raise flags of their own and wait for each other's, without fence.sc. One thread polls, under a guard, and all read in shared memory
// what it has found, as a loop of Triton does: each load of the old value is repeated, so stores that cross do no harm (R-MO2).
// launch: grid=2 block=32
// arg:    flags u32[64]=zeros
// arg:    out f32[2]=zeros
// result: out = np.float32([1, 1])
extern "C" __global__ void kernel(unsigned* flags, float* out) {
    __shared__ unsigned seen;
    unsigned place = (unsigned)__cvta_generic_to_shared(&seen), found = 0;
    if (!threadIdx.x) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flags + blockIdx.x * 32) : "memory");
    do {
        __syncthreads();
        asm volatile(
            "{ .reg .pred first; setp.eq.u32 first, %1, 0; @first ld.acquire.gpu.global.u32 %0, [%2]; @first st.shared.u32 [%3], %0; }"
            : "+r"(found) : "r"(threadIdx.x), "l"(flags + (blockIdx.x ^ 1) * 32), "r"(place) : "memory");
        __syncthreads();
    } while (*(volatile unsigned*)&seen == 0);
    if (!threadIdx.x) out[blockIdx.x] = 1;
}
