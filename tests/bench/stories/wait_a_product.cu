// Products of one warpgroup into two accumulators in turn. The wait behind each of them lets none overlap with the next; only the one behind
// the loop is needed.
#include "../../kernels/hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out, int rounds) {
    __shared__ __align__(128) f16 a[64 * 16], b[8 * 16];
    float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
    fill_operands(a, b, x, y);
    fence_async_shared();
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        wgmma_fence();
        multiply(d, operand(a), operand(b), 1);
        wgmma_commit();
        wgmma_wait<0>();
        multiply(e, operand(a), operand(b), 1);
        wgmma_commit();
        wgmma_wait<0>();
    }
    wgmma_wait<0>();
    keep(d);
    keep(e);
    for (int i = 0; i < 4; i++) d[i] += e[i];
    write_result(out + blockIdx.x * 512, d);
}
