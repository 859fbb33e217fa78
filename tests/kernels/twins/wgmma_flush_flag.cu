// Two products, each with a consumer, and one flag for the whole kernel that says whether the products have been waited for: the second
// consumer uses registers that are still being written (R-G4).
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// arg: more f32[64,8]=zeros
// expect: register-hazard @second @use severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
// result: more = 2 * x.astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out, float* more) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    fill_operands(a, b, x, y);
    fence_async_shared();
    __syncthreads();
    float d[4], e[4];
    wgmma_fence();
    multiply(d, operand(a), operand(b), 0);
    wgmma_commit();
    wgmma_wait<0>();
    write_result(out, d);
    wgmma_fence();
    multiply(e, operand(a), operand(b), 0);  /*@second*/
    wgmma_commit();
#ifndef RACY
    wgmma_wait<0>();
#endif
    for (int i = 0; i < 4; i++) e[i] *= 2;  /*@use*/
#ifdef RACY
    wgmma_wait<0>();
#endif
    write_result(more, e);
}
