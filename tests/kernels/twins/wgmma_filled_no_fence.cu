// A warpgroup stores the tiles that another one multiplies, and the only proxy fence comes before the loop: no tile is fenced.
// launch: grid=1 block=256 arch=sm_90a
// arg: x f16[2,64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[512]=zeros
// expect: missing-proxy-fence RAW @fill @multiply severity=error
// result: out = (x.astype(np.float32).sum(axis=0) @ y.astype(np.float32).T).ravel()
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[2][64 * 16], b[8 * 16];
    __shared__ u64 full[2];
    int t = threadIdx.x % 128;
    if (threadIdx.x == 0) init(full[0], 128), init(full[1], 128);
    if (threadIdx.x < 128) b[place(t / 16, t % 16)] = y[t];
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x >= 128) {
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
            for (int i = t; i < 64 * 16; i += 128) a[k][place(i / 16, i % 16)] = x[k * 1024 + i];  /*@fill*/
#ifndef RACY
            fence_async_shared();
#endif
            arrive(full[k]);
        }
        return;
    }
    float d[4] = {};
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        wait(full[k], 0);
        wgmma_fence();
        multiply(d, operand(a[k]), operand(b), k);  /*@multiply*/
        wgmma_commit();
        wgmma_wait<0>();
    }
    write_result(out, d);
}
