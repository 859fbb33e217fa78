// Operand A with M innermost: 64 rows are one line of 128 bytes for each k, so the rows of a warp are two chunks of each line (D25). The racy
// twin writes those of the next warp.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[16,64]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: data-race RAW @write @multiply severity=error
// result: out = x.astype(np.float32).T @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(1024) f16 a[16 * 64];
    __shared__ alignas(128) f16 b[8 * 16];
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    b[place(t / 16, t % 16)] = y[t];
    fence_async_shared();
    __syncthreads();
#ifdef RACY
    warp = (warp + 1) % 4;
#endif
    for (int i = lane; i < 16 * 16; i += 32) {
        int k = i / 16, row = warp * 16 + i % 16;
        a[k * 64 + (row / 8 ^ k % 8) * 8 + row % 8] = x[k * 64 + row];  /*@write*/
    }
    fence_async_shared();
    __syncwarp();
    float d[4];
    wgmma_fence();
    multiply<0, 1>(d, descriptor(shared(a), 1024, 1024, 1), operand(b), 0);  /*@multiply*/
    wgmma_commit();
    wgmma_wait<0>();
    write_result(out, d);
}
