// Two stages leave by TMA in turn. `wait_group.read 1` after a commit frees the other stage; before the commit it frees the one that
// was stored two turns ago, while the next turn fills the one of the last.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[1024]=arange
// arg: out tma:f32[32,32]=zeros,box=8x32
// expect: missing-wait WAR @store @write severity=error
// result: out = x.reshape(32, 32) + 1
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap out) {
    __shared__ alignas(128) float stage[2][256];
    int t = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < 4; k++) {
        for (int i = t; i < 256; i += 64) stage[k % 2][i] = x[k * 256 + i] + 1;  /*@write*/
        fence_async_shared();
        __syncthreads();
        if (t == 0) {
#ifdef RACY
            bulk_wait_read<1>();
#endif
            tensor_store(out, 0, k * 8, stage[k % 2]);  /*@store*/
            bulk_commit();
#ifndef RACY
            bulk_wait_read<1>();
#endif
        }
        __syncthreads();
    }
    if (t == 0) bulk_wait<0>();
}
