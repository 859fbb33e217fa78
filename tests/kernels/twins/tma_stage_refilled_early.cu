// The producer refills a stage without waiting for its empty barrier, while the readers of the last fill may still be at it.
// launch: grid=1 block=96 arch=sm_90a
// arg: in tma:f32[32,32]=arange,box=8x32
// arg: out f32[64]=zeros
// expect: data-race WAR @read @load severity=error
// allow: barrier-misuse @release @release severity=error
// result: out = np.arange(1024, dtype=np.float32).reshape(4, 4, 64).sum(axis=(0, 1))
#include "../hopper.cuh"
extern "C" __global__ void kernel(const __grid_constant__ TensorMap in, float* out) {
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
            if (k >= 2) wait(full[s], 0);  // only what it has itself issued: the fill has come, nobody need have read it
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
            for (int i = t; i < 256; i += 64) sum += stage[s][i];  /*@read*/
            arrive(empty[s]);  /*@release*/
        }
        out[t] = sum;
    }
}
