// Every warp waits for its own products only: without a barrier the one thread that refills the operand knows of its own warp (R-G1).
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[16,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @refill severity=error
// result: out = x.astype(np.float32) @ (y[:8] + y[8:]).astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    __shared__ u64 full;
    int t = threadIdx.x;
    fill_operands(a, b, x, y);
    if (t == 0) init(full, 1);
    fence_async_shared();
    __syncthreads();
    float d[4];
    for (int k = 0; k < 2; k++) {
        wgmma_fence();
        multiply(d, operand(a), operand(b), k);  /*@multiply*/
        wgmma_commit();
        wgmma_wait<0>();
        if (k == 1) break;
#ifndef RACY
        __syncthreads();
#endif
        if (t == 0) {
            // The operand's layout in memory: blocks of 8 rows by 8 columns.
            expect(full, B_BYTES);
            for (int row = 0; row < 16; row++) bulk_load(b + place(row / 2, row % 2 * 8), y + 128 + row * 8, 16, full);  /*@refill*/
        }
        wait(full, 0);
    }
    write_result(out, d);
}
