// Operands that ordinary stores have written are multiplied without a proxy fence (R-G2).
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-proxy-fence @a @multiply severity=error
// expect: missing-proxy-fence @b @multiply severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    int t = threadIdx.x;
    for (int i = t; i < 64 * 16; i += 128) a[place(i / 16, i % 16)] = x[i];  /*@a*/
    b[place(t / 16, t % 16)] = y[t];  /*@b*/
#ifndef RACY
    fence_async_shared();
#endif
    __syncthreads();
    float d[4];
    wgmma_fence();
    multiply(d, operand(a), operand(b), 0);  /*@multiply*/
    wgmma_commit();
    wgmma_wait<0>();
    write_result(out, d);
}
