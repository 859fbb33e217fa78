// After the barrier only the thread that stores fences. The manuals ask the writers for it; kernels that do it so work: a note of the
// strict reading (D2), and clean by default (clean/tma_epilogue_issuer_fences.cu).
// launch: grid=1 block=64 arch=sm_90a
// policy: isa
// arg: x f32[256]=arange
// arg: out tma:f32[8,32]=zeros,box=8x32
// expect: missing-proxy-fence @write @store severity=note
// result: out = x.reshape(8, 32) * 2
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap out) {
    __shared__ alignas(128) float tile[256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 64) tile[i] = x[i] * 2;  /*@write*/
#ifndef RACY
    fence_async_shared();
#endif
    __syncthreads();
    if (t == 0) {
#ifdef RACY
        fence_async_shared();
#endif
        tensor_store(out, 0, 0, tile);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
