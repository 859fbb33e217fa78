// One thread of the warpgroup frees the operand for all four warps, and another use of it by the same warpgroup sees that phase, as in CUTLASS's
// KernelTma in clusters (D12, SEMANTICS 9). The arrival must come behind the wait for the product.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[24,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @refill severity=error
// result: out = x.astype(np.float32) @ (y[:8] + y[8:16] + y[16:]).astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    __shared__ u64 full, empty;
    int t = threadIdx.x;
    fill_operands(a, b, x, y);
    if (t == 0) {
        init(full, 1);
        init(empty, 1);
    }
    fence_async_shared();
    __syncthreads();
    float d[4];
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        wgmma_fence();
        multiply(d, operand(a), operand(b), k);  /*@multiply*/
        wgmma_commit();
#ifdef RACY
        if (t == 0) arrive(empty);
        wgmma_wait<0>();
#else
        wgmma_wait<0>();
        if (t == 0) arrive(empty);
#endif
        if (k == 2) break;
        if (t == 0) {
            wait(empty, k & 1);
            // The operand's layout in memory: blocks of 8 rows by 8 columns.
            expect(full, B_BYTES);
            for (int row = 0; row < 16; row++) bulk_load(b + place(row / 2, row % 2 * 8), y + 128 * (k + 1) + row * 8, 16, full);  /*@refill*/
        }
        wait(full, k & 1);
    }
    write_result(out, d);
}
