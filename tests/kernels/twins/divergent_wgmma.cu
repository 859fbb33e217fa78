// wgmma.mma_async by half of each warp. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: barrier-misuse @multiply severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    fill_operands(a, b, x, y);
    fence_async_shared();
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    keep(d);
    wgmma_fence();
#ifdef RACY
    if (threadIdx.x % 32 < 16)
#endif
        multiply(d, operand(a), operand(b), 0);  /*@multiply*/
    wgmma_commit();
    wgmma_wait<0>();
    write_result(out, d);
}
