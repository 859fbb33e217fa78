// The producer refills a stage without waiting for its empty barrier. A counter tells it that the readers have come as far as the last
// fill, but a relaxed counter orders nothing, and they may still be at it.
// launch: grid=1 block=96 arch=sm_90a
// arg: in tma:f32[32,32]=arange,box=8x32
// arg: out f32[64]=zeros
// arg: seen u32[1]=zeros
// expect: data-race|missing-wait WAR @read @load severity=error
// result: out = np.arange(1024, dtype=np.float32).reshape(4, 4, 64).sum(axis=(0, 1))
#include "../hopper.cuh"
extern "C" __global__ void kernel(const __grid_constant__ TensorMap in, float* out, unsigned* seen) {
    __shared__ alignas(128) float stage[2][256];
    __shared__ u64 full[2], empty[2];
    int t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; s++) {
            init(full[s], 1);
            init(empty[s], 64);
        }
    }
    __syncthreads();
    if (t == 64) {
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            int s = k % 2;
#ifndef RACY
            wait(empty[s], (k / 2 & 1) ^ 1);
#else
            while (*(volatile unsigned*)seen + 64 < 64 * k) {}
            if (k >= 2) wait(full[s], 0);
#endif
            expect(full[s], 1024);
            tensor_load(stage[s], in, 0, k * 8, full[s]);  /*@load*/
        }
    } else if (t < 64) {
        float sum = 0.0f;
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            int s = k % 2;
            wait(full[s], k / 2 & 1);
#ifdef RACY
            atomicAdd(seen, 1);
#endif
            for (int i = t; i < 256; i += 64) sum += stage[s][i];  /*@read*/
#ifndef RACY
            arrive(empty[s]);
#endif
        }
        out[t] = sum;
    }
}
