// R-GM11: CTAs reduce into one tile with bulk copies. The last one, by a counter, reads it; nobody has waited for the results.
//
// launch: grid=3 block=32 arch=sm_90a
// arg:    sums u32[32]=zeros
// arg:    count u32[1]=zeros
// arg:    out u32[32]=zeros
// expect: missing-wait RAW @copy @load severity=error
// result: out = np.arange(32, dtype=np.uint32) * 3
#include "../hopper.cuh"
extern "C" __global__ void kernel(u32* sums, u32* count, u32* out) {
    __shared__ alignas(128) u32 tile[32];
    __shared__ u32 last;
    tile[threadIdx.x] = threadIdx.x;
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 128;" ::"l"(sums), "r"(shared(tile)) : "memory");  /*@copy*/
        bulk_commit();
#ifndef RACY
        bulk_wait<0>();
#endif
        __threadfence();
        last = atomicAdd(count, 1) == gridDim.x - 1;
        __threadfence();
#ifdef RACY
        bulk_wait<0>();
#endif
    }
    __syncthreads();
    if (last) out[threadIdx.x] = sums[threadIdx.x];  /*@load*/
}
