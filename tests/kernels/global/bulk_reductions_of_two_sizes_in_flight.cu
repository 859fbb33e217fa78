// R-GM11: the same by one thread, behind the issue of the first one. More order is no worse: each is still performed as a whole.
//
// launch: grid=1 block=64 arch=sm_90a
// arg:    sums u32[64]=arange
// expect: data-race WAW @narrow @wide severity=warning
// result: sums = sums + 4
#include "../hopper.cuh"
#define REDUCE(type) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add." type " [%0], [%1], 256;" ::"l"(sums), "r"(shared(tile)) : "memory")
extern "C" __global__ void kernel(u32* sums) {
    __shared__ alignas(128) u32 tile[64];
    u32 t = threadIdx.x;
    tile[t] = 2;
    fence_async_shared();
    __syncthreads();
    if (t) return;
    REDUCE("u32");  /*@narrow*/
#ifdef RACY
    REDUCE("u64");  /*@wide*/
#else
    REDUCE("u32");
#endif
    bulk_commit();
    bulk_wait<0>();
}
