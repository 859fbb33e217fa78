// Each lane waits for its copy of this round and reads what other lanes have copied, with no __syncwarp() in between. The lanes have the copies of
// the rounds before, behind the __syncwarp() at the end: the read is of this round all the same, since the lane has made its copy (R-CP2, R-W1).
// launch: grid=1 block=32
// arg: a f32[6,128]=random
// arg: out f32[6,32]=zeros
// expect: missing-wait @copy @read severity=error
// result: out = a[:, (np.arange(32)[:, None] * 4 + np.arange(4) * 67 + 13) % 128].sum(2)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* a, float* out) {
    __shared__ alignas(16) float tile[128];
    int lane = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < 6; k++) {
        copy16(&tile[lane * 4], a + k * 128 + lane * 4);  /*@copy*/
        copy_wait();
#ifndef RACY
        __syncwarp();
#endif
        float sum = 0;
        for (int j = 0; j < 4; j++) sum += tile[(lane * 4 + j * 67 + 13) % 128];  /*@read*/
        out[k * 32 + lane] = sum;
        __syncwarp();
    }
}
