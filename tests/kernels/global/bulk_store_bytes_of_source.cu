// G11: while a bulk copy is in flight, its source is written at bytes that its mask leaves out. RACY: at bytes that it chooses.
//
// launch: grid=1 block=32 arch=sm_100a
// arg:    data f32[128]=zeros
// expect: missing-wait WAR @copy @store severity=error
// result: data = np.where(np.arange(128) % 4 < 2, 1, 0).astype(np.float32)
#include "../hopper.cuh"
#define COPY "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%0], [%1], 512, %2;"
extern "C" __global__ void kernel(float* data) {
    __shared__ alignas(128) float tile[128];
    int t = threadIdx.x;
    for (int i = t; i < 128; i += 32) tile[i] = 1;
    fence_async_shared();
    __syncthreads();
#ifdef RACY
    const int at = 1;
#else
    const int at = 2;
#endif
    if (t) return;
    unsigned from = (unsigned)__cvta_generic_to_shared(tile);
    asm volatile(COPY ::"l"(data), "r"(from), "h"((short)0x00ff) : "memory");  /*@copy*/
    bulk_commit();
    tile[at] = 7;  /*@store*/
    bulk_wait<0>();
}
