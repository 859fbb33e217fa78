// st.bulk writes through the generic proxy: a bulk store of what it has cleared needs a proxy fence.
// launch: grid=1 block=64 arch=sm_100a
// arg: out u32[64]=arange
// backends: cpu
// expect: missing-proxy-fence RAW @fill @copy severity=error
// result: out = 0 * out
#include "../hopper.cuh"
extern "C" __global__ void kernel(u32* out) {
    __shared__ alignas(128) u32 tile[64];
    if (threadIdx.x == 0) {
        asm volatile("st.bulk.weak.shared::cta [%0], 256, 0;" ::"r"(shared(tile)) : "memory");  /*@fill*/
#ifndef RACY
        fence_async_shared();
#endif
        bulk_store(out, tile, 256);  /*@copy*/
        bulk_commit();
        bulk_wait<0>();
    }
}
