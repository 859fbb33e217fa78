// The threads refill an operand behind the commit of its product: other warps of the warpgroup may be before theirs, but no commit is missing.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[16,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @refill severity=error
// result: out = x.astype(np.float32) @ y[:8].astype(np.float32).T + x.astype(np.float32) @ y[8:].astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    u32 t = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    fill_operands(a, b, x, y);
    fence_async_shared();
    __syncthreads();
    keep(d);
    wgmma_fence();
    multiply(d, operand(a), operand(b), 0);  /*@multiply*/
    wgmma_commit();
#ifndef RACY
    wgmma_wait<0>();
    __syncthreads();
#endif
    b[place(t / 16, t % 16)] = y[128 + t];  /*@refill*/
    fence_async_shared();
#ifdef RACY
    wgmma_wait<0>();
#endif
    __syncthreads();
    keep(d);
    wgmma_fence();
    multiply(d, operand(a), operand(b), 1);
    wgmma_commit();
    wgmma_wait<0>();
    keep(d);
    write_result(out, d);
}
