// G11: a bulk copy writes the bytes that its mask chooses of each 16, and another CTA writes the others. RACY: it writes chosen bytes.
//
// launch: grid=2 block=32 arch=sm_100a
// arg:    data f32[128]=zeros
// expect: global-race @copy @store severity=error
// result: data = np.where(np.arange(128) % 4 < 2, 1, np.where(np.arange(128) % 4 == 2, 7, 0)).astype(np.float32)
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
    if (blockIdx.x) {
        data[4 * t + at] = 7;  /*@store*/
    } else if (t == 0) {
        unsigned from = (unsigned)__cvta_generic_to_shared(tile);
        asm volatile(COPY ::"l"(data), "r"(from), "h"((short)0x00ff) : "memory");  /*@copy*/
        bulk_commit();
        bulk_wait<0>();
    }
}
