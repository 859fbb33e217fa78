// An operand is written while a product that reads it has not been waited for (R-G1).
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @clear severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    fill_operands(a, b, x, y);
    fence_async_shared();
    __syncthreads();
    float d[4];
    wgmma_fence();
    multiply(d, operand(a), operand(b), 0);  /*@multiply*/
    wgmma_commit();
#ifndef RACY
    wgmma_wait<0>();
#endif
    __syncthreads();
    b[threadIdx.x] = 0;  /*@clear*/
#ifdef RACY
    wgmma_wait<0>();
#endif
    write_result(out, d);
}
