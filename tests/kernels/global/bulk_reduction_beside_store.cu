// R-GM11: a strong store beside a bulk reduction. It is no update, and through another proxy, so the two are not morally strong.
// 
// launch: grid=2 block=64 arch=sm_90a
// arg:    sums u32[64]=arange
// arg:    flag u32[1]=zeros
// expect: global-race WAW @copy @store severity=error
// result: sums = np.full(64, 1)
#include "../hopper.cuh"
#define SET(flag) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory")
INLINE void see(const u32* flag) {
    u32 seen = 0;
    if (threadIdx.x == 0)
        while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    __syncthreads();
}
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
        SET(flag);
    } else {
#ifndef RACY
        see(flag);
#endif
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(sums + t) : "memory");  /*@store*/
    }
}
