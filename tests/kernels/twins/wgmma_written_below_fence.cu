// The compiler moves the initialisation of the accumulators below wgmma.fence, which names no register: a warning, since ptxas orders
// plain writes before the product by itself. The repaired twin pins the accumulators before the fence, as CUTLASS does.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: register-hazard RAW @multiply severity=warning
// result: out = x.astype(np.float32) @ y.astype(np.float32).T + 3
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    fill_operands(a, b, x, y);
    fence_async_shared();
    __syncthreads();
    float d[4] = {3, 3, 3, 3};
#ifndef RACY
    keep(d);
#endif
    wgmma_fence();
    multiply(d, operand(a), operand(b), 1);  /*@multiply*/
    wgmma_commit();
    wgmma_wait<0>();
    write_result(out, d);
}
