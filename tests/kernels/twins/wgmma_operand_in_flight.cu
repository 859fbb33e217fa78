// A product reads an operand whose copy has not been waited for (R-G3).
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait RAW @load @multiply severity=error
// allow: lifetime @load severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    __shared__ u64 full;
    int t = threadIdx.x;
    for (int i = t; i < 64 * 16; i += 128) a[place(i / 16, i % 16)] = x[i];
    if (t == 0) {
        init(full, 1);
        expect(full, B_BYTES);
        for (int row = 0; row < 16; row++) bulk_load(b + place(row / 2, row % 2 * 8), y + row * 8, 16, full);  /*@load*/
    }
    fence_async_shared();
    __syncthreads();
#ifndef RACY
    wait(full, 0);
#endif
    float d[4];
    wgmma_fence();
    multiply(d, operand(a), operand(b), 0);  /*@multiply*/
    wgmma_commit();
    wgmma_wait<0>();
    write_result(out, d);
}
