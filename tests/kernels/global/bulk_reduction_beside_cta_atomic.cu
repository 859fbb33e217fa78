// R-GM11: each element of a bulk reduction is changed at .gpu scope. An atomic of .cta scope of another CTA does not include its thread.
// 
// launch: grid=2 block=64 arch=sm_90a
// arg:    sums u32[64]=arange
// arg:    flag u32[1]=zeros
// expect: scope WAW @copy @atomic severity=error
// result: sums = sums + 3
#include "../hopper.cuh"
#define REDUCE(type) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add." type " [%0], [%1], 256;" ::"l"(sums), "r"(shared(tile)) : "memory")
extern "C" __global__ void kernel(u32* sums, u32* flag) {
    __shared__ alignas(128) u32 tile[64];
    u32 t = threadIdx.x;
    tile[t] = 2;
    fence_async_shared();
    __syncthreads();
    if (blockIdx.x == 0) {
        if (t) return;
        REDUCE("u32");  /*@copy*/
        bulk_commit();
        bulk_wait<0>();
    } else {
#ifdef RACY
        atomicAdd_block(sums + t, 1);  /*@atomic*/
#else
        atomicAdd(sums + t, 1);
#endif
    }
}
