// An operand in lines of 128 bytes with the 128-byte swizzle: a product reads two chunks of each line. While it runs, the other six may be
// written; the racy twin writes all eight.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @write severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(1024) f16 b[8 * 64];
    __shared__ alignas(128) f16 a[64 * 16];
    int t = threadIdx.x;
    for (int i = t; i < 64 * 16; i += 128) a[place(i / 16, i % 16)] = x[i];
    int row = t / 16, k = t % 16;
    b[row * 64 + ((k / 8 ^ row) * 8) + k % 8] = y[t];
    fence_async_shared();
    __syncthreads();
    float d[4];
    wgmma_fence();
    multiply(d, operand(a), descriptor(shared(b), 16, 1024, 1), 0);  /*@multiply*/
    wgmma_commit();
    __syncthreads();  // all warps have issued theirs
    if (t < 8)
#ifdef RACY
        for (int chunk = 0; chunk < 8; chunk++) b[t * 64 + (chunk ^ t) * 8] = 1;  /*@write*/
#else
        for (int chunk = 2; chunk < 8; chunk++) b[t * 64 + (chunk ^ t) * 8] = 1;
#endif
    wgmma_wait<0>();
    write_result(out, d);
}
