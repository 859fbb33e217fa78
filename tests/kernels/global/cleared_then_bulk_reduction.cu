// R-GM12: the threads of a CTA clear the sums, and one adds to them by a bulk reduction: behind the barrier, but with no proxy fence for global memory.
// 
// launch: grid=1 block=64 arch=sm_90a
// arg:    sums u32[64]=arange
// arg:    flag u32[1]=zeros
// expect: missing-proxy-fence WAW @clear @copy severity=error
// result: sums = np.full(64, 2)
#include "../hopper.cuh"
#define REDUCE(type) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add." type " [%0], [%1], 256;" ::"l"(sums), "r"(shared(tile)) : "memory")
extern "C" __global__ void kernel(u32* sums, u32* flag) {
    __shared__ alignas(128) u32 tile[64];
    u32 t = threadIdx.x;
    tile[t] = 2;
    fence_async_shared();
    __syncthreads();
    sums[t] = 0;  /*@clear*/
#ifndef RACY
    fence_async_global();
#endif
    __syncthreads();
    if (t) return;
    REDUCE("u32");  /*@copy*/
    bulk_commit();
    bulk_wait<0>();
}
