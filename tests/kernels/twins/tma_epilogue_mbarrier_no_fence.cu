// Two writer warps hand stages to a storing warp through mbarriers; their arrivals order the writes, but no fence takes them to TMA.
// launch: grid=1 block=96 arch=sm_90a
// arg: x f32[1024]=arange
// arg: out tma:f32[32,32]=zeros,box=8x32
// expect: missing-proxy-fence @write @store severity=error
// result: out = x.reshape(32, 32) + 1
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap out) {
    __shared__ alignas(128) float stage[2][256];
    __shared__ u64 full[2], empty[2];
    int t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; s++) {
            init(full[s], 64);
            init(empty[s], 1);
        }
    }
    __syncthreads();
    if (t < 64) {
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            int s = k % 2;
            wait(empty[s], (k / 2 & 1) ^ 1);
            for (int i = t; i < 256; i += 64) stage[s][i] = x[k * 256 + i] + 1;  /*@write*/
#ifndef RACY
            fence_async_shared();
#endif
            arrive(full[s]);
        }
    } else if (t == 64) {
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            int s = k % 2;
            wait(full[s], k / 2 & 1);
            tensor_store(out, 0, k * 8, stage[s]);  /*@store*/
            bulk_commit();
            bulk_wait_read<0>();
            arrive(empty[s]);
        }
        bulk_wait<0>();
    }
}
