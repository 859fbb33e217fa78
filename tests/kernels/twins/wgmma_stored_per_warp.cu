// Every warp waits for its own products, and stores a part of the operand of the next ones: without a barrier the other warps may be behind (R-G1).
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[16,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @store severity=warning
// result: out = x.astype(np.float32) @ (y[:8] + y[8:]).astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    int t = threadIdx.x;
    fill_operands(a, b, x, y);
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
        b[place(t / 16, t % 16)] = y[128 + t];  /*@store*/
        fence_async_shared();
        __syncthreads();
    }
    write_result(out, d);
}
