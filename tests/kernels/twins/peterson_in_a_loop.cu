// Peterson's algorithm as it is used: two warps take turns in a loop, with flags that plain stores have lowered at first. In step, each sees the
// other's flag in each round, and no look misses a store. Each thread leaves its loop where it finds the other's flag lowered, so without
// fence.sc both may (R-MO2).
// backends: cpu
// launch: grid=1 block=64
// arg: out u32[1]=zeros
// expect: missing-order RAW @store @load severity=warning
// expect: data-race @sum @sum severity=error
// result: out = np.full(1, 15)
#include "../mbarrier.cuh"
#define STORE(form, p, v) asm volatile("st." form ".cta.shared.u32 [%0], %1;" ::"r"(shared(p)), "r"(v) : "memory")
#define LOAD(v, p) asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared(p)) : "memory")
#ifdef RACY
#define ORDER() asm volatile("fence.acq_rel.cta;" ::: "memory")
#else
#define ORDER() asm volatile("fence.sc.cta;" ::: "memory")
#endif
extern "C" __global__ void kernel(u32* out) {
    __shared__ u32 wants[2], turn, sum;
    u32 w = threadIdx.x / 32;
    if (threadIdx.x == 0) wants[0] = wants[1] = turn = sum = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
#pragma unroll 1
        for (int k = 0; k < 5; k++) {
            STORE("relaxed", &wants[w], 1);  /*@store*/
            ORDER();
            STORE("relaxed", &turn, 1 - w);
            ORDER();
            u32 other, mine;
            do {
                LOAD(other, &wants[1 - w]);  /*@load*/
                LOAD(mine, &turn);
            } while (other && mine != w);
            ORDER();
            sum += 1 + w;  /*@sum*/
            STORE("release", &wants[w], 0);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = sum;
}
