// One elected warp of the warpgroup frees a stage for all four, as CUTLASS's consumers do: its wait tells that the product, one operation of
// the warpgroup, has read its operands (D12). Freed before that wait, the stage is refilled under the product;
// in some schedules so far ahead that a warp misses a phase, and waits for ever.
// launch: grid=1 block=256 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y tma:f16[8,128]=random,box=8x8
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @load severity=error
// allow: deadlock severity=error
// result: out = np.tile(x, (1, 8)).astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
enum { STAGES = 2, STEPS = 8 };
#ifndef ELECTED
#define ELECTED 1
#endif
extern "C" __global__ void kernel(const f16* x, const __grid_constant__ TensorMap y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[STAGES][8 * 16];
    __shared__ u64 full[STAGES], empty[STAGES];
    int t = threadIdx.x;
    for (int i = t; i < 64 * 16; i += 256) a[place(i / 16, i % 16)] = x[i];
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            init(full[s], 1);
            init(empty[s], 1);
        }
    }
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
#pragma unroll 1
        for (int k = 0; k < STEPS; k++) {
            int s = k % STAGES;
            wait(empty[s], (k / STAGES & 1) ^ 1);
            expect(full[s], B_BYTES);
            tensor_load(b[s], y, k * 16, 0, full[s]);  /*@load*/
            tensor_load(b[s] + 64, y, k * 16 + 8, 0, full[s]);  /*@load*/
        }
    } else if (t >= 128) {
        bool elected = t == 128 + 32 * ELECTED;
        float d[4];
#pragma unroll 1
        for (int k = 0; k < STEPS; k++) {
            int s = k % STAGES;
            wait(full[s], k / STAGES & 1);
            wgmma_fence();
            multiply(d, operand(a), operand(b[s]), k);  /*@multiply*/
            wgmma_commit();
#ifdef RACY
            if (elected) arrive(empty[s]);
#endif
            wgmma_wait<0>();
#ifndef RACY
            if (elected) arrive(empty[s]);
#endif
        }
        write_result(out, d);
    }
}
