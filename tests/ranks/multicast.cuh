// Accesses by multimem addresses, and a barrier by one: each rank adds one to the counter of all, and waits for its own.
#pragma once
#include "ranks.cuh"

__device__ float sum_of_all(float *many) {
    float value;
    asm volatile("multimem.ld_reduce.relaxed." SCOPE ".global.add.f32 %0, [%1];" : "=f"(value) : "l"(many) : "memory");
    return value;
}
__device__ void put_in_all(float *many, float value) { asm volatile("multimem.st.weak.global.f32 [%0], %1;" ::"l"(many), "f"(value) : "memory"); }
__device__ void count_in_all(u32 *many) { asm volatile("multimem.red.release." SCOPE ".global.add.u32 [%0], 1;" ::"l"(many) : "memory"); }
__device__ void count_relaxed(u32 *many) { asm volatile("multimem.red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(many) : "memory"); }

__device__ void meet(u32 *own, u32 *many, u32 value) {
    __syncthreads();
    if (threadIdx.x == 0) {
        count_in_all(many);
        while (get(own) < value * RANKS) {}
    }
    __syncthreads();
}
