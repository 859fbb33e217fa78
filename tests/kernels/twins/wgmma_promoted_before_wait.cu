// As in products of FP8, the accumulators of each step are scaled and added to sums in registers. The wait leaves the newest product in flight.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[2,64,16]=random
// arg: y f16[8,16]=random
// arg: scale f32[2]=arange
// arg: out f32[64,8]=zeros
// expect: register-hazard @product @promote severity=error
// result: out = (x[0].astype(np.float32) * scale[0] + x[1].astype(np.float32) * scale[1]) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, const float* scale, float* out) {
    __shared__ alignas(128) f16 a[2][64 * 16], b[8 * 16];
    for (int k = 0; k < 2; k++) fill_operands(a[k], b, x + k * 64 * 16, y);
    fence_async_shared();
    __syncthreads();
    float sum[4] = {0, 0, 0, 0}, d[4];
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        wgmma_fence();
        multiply(d, operand(a[k]), operand(b), 0);  /*@product*/
        wgmma_commit();
#ifdef RACY
        wgmma_wait<1>();
#else
        wgmma_wait<0>();
#endif
        for (int i = 0; i < 4; i++) sum[i] += scale[k] * d[i];  /*@promote*/
    }
    wgmma_wait<0>();
    write_result(out, sum);
}
