// Each warp of a warpgroup reads its own 16 rows of A (D25). Who writes these needs only __syncwarp, as shipped attention kernels write their
// probabilities; who writes the rows of the next warp needs a barrier.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: data-race RAW @write @multiply severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    b[place(t / 16, t % 16)] = y[t];
    fence_async_shared();
    __syncthreads();
#ifdef RACY
    warp = (warp + 1) % 4;
#endif
    for (int i = lane; i < 16 * 16; i += 32) a[place(warp * 16 + i / 16, i % 16)] = x[warp * 256 + i];  /*@write*/
    fence_async_shared();
    __syncwarp();
    float d[4];
    wgmma_fence();
    multiply(d, operand(a), operand(b), 0);  /*@multiply*/
    wgmma_commit();
    wgmma_wait<0>();
    write_result(out, d);
}
