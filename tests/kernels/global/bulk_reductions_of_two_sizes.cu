// R-GM11: reductions of different sizes change the same bytes. Each is performed as a whole (ISA 8.7.2), and no axiom says more.
// 
// launch: grid=2 block=64 arch=sm_90a
// arg:    sums u32[64]=arange
// arg:    flag u32[1]=zeros
// expect: global-race WAW @narrow @wide severity=warning
// result: sums = sums + 4
#include "../hopper.cuh"
#define REDUCE(type) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add." type " [%0], [%1], 256;" ::"l"(sums), "r"(shared(tile)) : "memory")
extern "C" __global__ void kernel(u32* sums, u32* flag) {
    __shared__ alignas(128) u32 tile[64];
    u32 t = threadIdx.x;
    tile[t] = 2;
    fence_async_shared();
    __syncthreads();
    if (t) return;
    if (blockIdx.x == 0) REDUCE("u32");  /*@narrow*/
#ifdef RACY
    else REDUCE("u64");  /*@wide*/
#else
    else REDUCE("u32");
#endif
    bulk_commit();
    bulk_wait<0>();
}
