// A sparse product reads twice as much of B along K as a dense one does. The second half is written while the product has not been waited for (R-G1).
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,32]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @clear severity=error
// result: out = x.astype(np.float32) @ y.reshape(8, 8, 4)[:, :, 1:3].reshape(8, 16).astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 32];
    u32 t = threadIdx.x;
    for (u32 i = t; i < 64 * 16; i += 128) a[place(i / 16, i % 16)] = x[i];
    for (u32 i = t; i < 8 * 32; i += 128) b[place(i / 32, i % 32)] = y[i];
    fence_async_shared();
    __syncthreads();
    float d[4];
    u32 places = 0x99999999;  // of each four elements of A the second and the third are stored
    wgmma_fence();
    asm volatile(  /*@multiply*/
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, %6, 0, 0, 1, 1, 0, 0;"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "l"(operand(a)), "l"(operand(b)), "r"(places));  /*@multiply*/
    wgmma_commit();
#ifndef RACY
    wgmma_wait<0>();
#endif
    __syncthreads();
    b[8 * 16 + t] = 0;  /*@clear*/
#ifdef RACY
    wgmma_wait<0>();
#endif
    write_result(out, d);
}
