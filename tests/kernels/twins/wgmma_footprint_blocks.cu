// Operand A without a swizzle, with gaps of 128 bytes between its blocks. While a product runs the gaps may be written; the racy twin
// writes one chunk further, into the block behind the gap.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @write severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
#ifdef RACY
#define CHUNKS 9
#else
#define CHUNKS 8
#endif
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[2 * 64 * 16 + 64], b[8 * 16];
    int t = threadIdx.x;
    for (int i = t; i < 64 * 16; i += 128) {
        int row = i / 16, k = i % 16;
        a[(row / 8 * 2 + k / 8) * 128 + row % 8 * 8 + k % 8] = x[i];
    }
    b[place(t / 16, t % 16)] = y[t];
    fence_async_shared();
    __syncthreads();
    float d[4];
    wgmma_fence();
    multiply(d, descriptor(shared(a), 256, 512, 0), operand(b), 0);  /*@multiply*/
    wgmma_commit();
    __syncthreads();  // all warps have issued theirs
    if (t < CHUNKS)
        for (int block = 0; block < 16; block++) a[block * 128 + 64 + t * 8] = 1;  /*@write*/
    wgmma_wait<0>();
    write_result(out, d);
}
