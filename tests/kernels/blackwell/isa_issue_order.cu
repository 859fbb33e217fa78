// A product, then a copy over its sums, in the order of their issue only (T3).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// policy: isa
// expect: missing-wait WAW @product @copy severity=warning
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    prepare(a, x, b, y, base, done);
    if (threadIdx.x == 0) {
        multiply(base, a, b, 0);  /*@product*/
#ifndef RACY
        commit_to(done);
        wait(done, 0);
#endif
        copy_4_columns(base, a);  /*@copy*/
        commit_to(done);
#ifdef RACY
        wait(done, 0);
#else
        wait(done, 1);
#endif
    }
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
