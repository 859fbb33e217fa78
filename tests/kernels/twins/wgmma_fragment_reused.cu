// As in the second product of attention, the A operand is in registers. The next step's values go there while the product still reads them.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[2,64,16]=random
// arg: y f16[2,8,16]=random
// arg: out f32[64,8]=zeros
// expect: register-hazard @product @next severity=error
// result: out = sum(x[k].astype(np.float32) @ y[k].astype(np.float32).T for k in range(2))
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 b[2][8 * 16];
    for (u32 k = 0; k < 2; k++) b[k][place(threadIdx.x / 16, threadIdx.x % 16)] = y[k * 8 * 16 + threadIdx.x];
    fence_async_shared();
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    u32 p[4];
    load_fragment(p, x);
    keep(d);
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        wgmma_fence();
        multiply_fragment(d, p, operand(b[k]));  /*@product*/
        wgmma_commit();
#ifndef RACY
        wgmma_wait<0>();
#endif
        if (k + 1 < 2) load_fragment(p, x + 64 * 16);  /*@next*/
#ifdef RACY
        wgmma_wait<0>();
#endif
    }
    write_result(out, d);
}
