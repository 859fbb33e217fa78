// Two warpgroups multiply by one B, and the results go over it. Each has waited for its own product; that of the other may still read B.
// launch: grid=1 block=256 arch=sm_90a
// arg: x f16[128,16]=random
// arg: y f16[8,16]=random
// arg: out f32[128,8]=zeros
// expect: data-race @multiply @write severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[2][64 * 16];
    __shared__ alignas(128) float stage[1024];  // B, then the results
    int t = threadIdx.x % 128, group = threadIdx.x / 128;
    for (int i = t; i < 64 * 16; i += 128) a[group][place(i / 16, i % 16)] = x[group * 1024 + i];
    if (group == 0) ((f16*)stage)[place(t / 16, t % 16)] = y[t];
    fence_async_shared();
    __syncthreads();
    float d[4];
    wgmma_fence();
    multiply(d, operand(a[group]), operand(stage), 0);  /*@multiply*/
    wgmma_commit();
    wgmma_wait<0>();
#ifndef RACY
    __syncthreads();
#endif
    write_result(stage + group * 512, d);  /*@write*/
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
    for (int i = t; i < 512; i += 128) out[group * 512 + i] = stage[group * 512 + i];
}
