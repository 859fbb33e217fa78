// Each warp rewrites its own rows of A after its own wait for the product that reads them (D25). A wait that leaves one group does not cover it.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[3,64,16]=random
// arg: y f16[8,16]=random
// arg: out f32[64,8]=zeros
// expect: missing-wait WAR @multiply @write severity=error
// result: out = x.astype(np.float32).sum(0) @ y.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16];
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    b[place(t / 16, t % 16)] = y[t];
    fence_async_shared();
    __syncthreads();
    float d[4];
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        for (int i = lane; i < 16 * 16; i += 32) a[place(warp * 16 + i / 16, i % 16)] = x[k * 1024 + warp * 256 + i];  /*@write*/
        fence_async_shared();
        __syncwarp();
        wgmma_fence();
        multiply(d, operand(a), operand(b), k);  /*@multiply*/
        wgmma_commit();
#ifdef RACY
        wgmma_wait<1>();
#else
        wgmma_wait<0>();
#endif
    }
    wgmma_wait<0>();
    write_result(out, d);
}
