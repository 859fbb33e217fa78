// Operand B with N innermost: 8 columns are one chunk of each of 16 lines of 32 bytes. While a product runs the other chunk of each line may
// be written; the racy twin writes both.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[16,8]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @write severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(1024) f16 b[16 * 16];
    __shared__ alignas(128) f16 a[64 * 16];
    int t = threadIdx.x;
    for (int i = t; i < 64 * 16; i += 128) a[place(i / 16, i % 16)] = x[i];
    int k = t / 8, n = t % 8;
    b[k * 16 + (k / 4 % 2) * 8 + n] = y[t];  // 32-byte swizzle: the chunk is exchanged in every second four lines
    fence_async_shared();
    __syncthreads();
    float d[4];
    wgmma_fence();
    multiply<1>(d, operand(a), descriptor(shared(b), 256, 256, 3), 0);  /*@multiply*/
    wgmma_commit();
    __syncthreads();  // all warps have issued theirs
    if (t < 16) {
        b[t * 16 + (t / 4 % 2 ^ 1) * 8] = 1;
#ifdef RACY
        b[t * 16 + (t / 4 % 2) * 8 + 1] = 1;  /*@write*/
#endif
    }
    wgmma_wait<0>();
    write_result(out, d);
}
