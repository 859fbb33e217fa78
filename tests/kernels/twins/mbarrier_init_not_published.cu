// Another warp arrives after the initialisation in time, not in order: a relaxed flag tells it, and no barrier (R-M8).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @init @arrive severity=error
// allow: barrier-misuse
// allow: data-race @init @arrive
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ u32 ready;
    __shared__ float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) asm volatile("st.relaxed.cta.shared.u32 [%0], 0;" :: "r"(shared(&ready)) : "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        INIT(&full, 32);  /*@init*/
        asm volatile("st.relaxed.cta.shared.u32 [%0], 1;" :: "r"(shared(&ready)) : "memory");
    }
#ifndef RACY
    __syncthreads();
#endif
    if (warp == 1) {
        u32 seen;
        do asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(shared(&ready)) : "memory");
        while (!seen);
        tile[lane] = x[lane];
        ARRIVE(&full);  /*@arrive*/
    } else {
        WAIT(&full, 0);
        out[lane] = tile[31 - lane];
    }
}
