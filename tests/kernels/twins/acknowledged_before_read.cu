// Two warps hand over a slot by flags in shared memory. The consumer acknowledges before it has read: that release covers nothing behind it.
// launch: grid=1 block=64
// arg: x f32[128]=random
// arg: out f32[128]=zeros
// expect: data-race WAR @read @write severity=error
// result: out = x.reshape(4, 32)[:, ::-1].reshape(128)
__device__ void set(unsigned* flag, unsigned value) {
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(flag)), "r"(value) : "memory");
}
__device__ unsigned get(unsigned* flag) {
    unsigned value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(value) : "r"((unsigned)__cvta_generic_to_shared(flag)) : "memory");
    return value;
}
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float slot[32];
    __shared__ unsigned full, read;
    int t = threadIdx.x, lane = t % 32;
    if (t == 0) full = read = 0;
    __syncthreads();
#pragma unroll 1
    for (unsigned k = 1; k <= 4; k++) {
        if (t < 32) {
            while (get(&read) != k - 1) {}
            __syncwarp();
            slot[lane] = x[(k - 1) * 32 + lane];  /*@write*/
            __syncwarp();
            if (lane == 0) set(&full, k);
        } else {
            while (get(&full) != k) {}
            __syncwarp();
#ifdef RACY
            if (lane == 0) set(&read, k);
#endif
            out[(k - 1) * 32 + lane] = slot[31 - lane];  /*@read*/
            __syncwarp();
#ifndef RACY
            if (lane == 0) set(&read, k);
#endif
        }
    }
}
