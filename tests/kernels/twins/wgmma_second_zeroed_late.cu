// Two groups behind one fence, each with its own accumulator: the compiler sets the second one to zero behind the group of the first, which
// is a warning. The repaired twin pins both before the fence.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[128,8]=zeros
// expect: register-hazard WAR @second severity=warning
// result: out = np.concatenate([x.astype(np.float32) @ y.astype(np.float32).T] * 2)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    fill_operands(a, b, x, y);
    fence_async_shared();
    __syncthreads();
    float d[4] = {}, e[4] = {};
    keep(d);
#ifndef RACY
    keep(e);
#endif
    wgmma_fence();
    multiply(d, operand(a), operand(b), 1);
    wgmma_commit();
    multiply(e, operand(a), operand(b), 1);  /*@second*/
    wgmma_commit();
    wgmma_wait<0>();
    write_result(out, d);
    write_result(out + 512, e);
}
