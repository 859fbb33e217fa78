// A product reads what cp.async brought, with no proxy fence between: shipped libraries do so, and only the strict reading asks for one.
// launch: grid=1 block=128 arch=sm_90a
// policy: isa
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-proxy-fence RAW @a @multiply severity=warning
// expect: missing-proxy-fence RAW @b @multiply severity=warning
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    int t = threadIdx.x, row = t / 2, k = t % 2 * 8;
    copy16(a + place(row, k), x + row * 16 + k);  /*@a*/
    if (t < 16) copy16(b + place(row, k), y + row * 16 + k);  /*@b*/
    copy_wait();
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
