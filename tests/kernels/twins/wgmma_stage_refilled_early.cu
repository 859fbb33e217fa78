// The producer refills an operand without waiting for its empty barrier. A counter tells it that the products of the last fill have been
// issued, but a relaxed counter orders nothing, and they may still read.
// launch: grid=1 block=160 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y tma:f16[8,64]=random,box=8x8
// arg: out f32[64,8]=zeros
// arg: seen u32[1]=zeros
// expect: data-race|missing-wait WAR @multiply @load severity=error
// result: out = np.tile(x, (1, 4)).astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const __grid_constant__ TensorMap y, float* out, unsigned* seen) {
    __shared__ alignas(128) f16 a[64 * 16], b[2][8 * 16];
    __shared__ u64 full[2], empty[2];
    int t = threadIdx.x;
    for (int i = t; i < 64 * 16; i += 160) a[place(i / 16, i % 16)] = x[i];
    if (t == 0) {
        for (int s = 0; s < 2; s++) {
            init(full[s], 1);
            init(empty[s], 4);
        }
    }
    fence_async_shared();
    __syncthreads();
    if (t == 128) {
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            int s = k % 2;
#ifndef RACY
            wait(empty[s], (k / 2 & 1) ^ 1);
#else
            while (*(volatile unsigned*)seen + 128 < 128 * k) {}
            if (k >= 2) wait(full[s], 0);
#endif
            expect(full[s], B_BYTES);
            tensor_load(b[s], y, k * 16, 0, full[s]);  /*@load*/
            tensor_load(b[s] + 64, y, k * 16 + 8, 0, full[s]);  /*@load*/
        }
    } else if (t < 128) {
        float d[4];
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            int s = k % 2;
            wait(full[s], k / 2 & 1);
            wgmma_fence();
            multiply(d, operand(a), operand(b[s]), k);  /*@multiply*/
            wgmma_commit();
#ifdef RACY
            atomicAdd(seen, 1);
#endif
            wgmma_wait<0>();
#ifndef RACY
            if (t % 32 == 0) arrive(empty[s]);
#endif
        }
        write_result(out, d);
    }
}
