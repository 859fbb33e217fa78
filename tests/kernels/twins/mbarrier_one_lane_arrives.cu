// A warp fills a stage, and one of its lanes arrives for all: it publishes what it has stored itself (cudnn-frontend #426).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[96]=random
// arg: out f32[32]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x.reshape(3, 32)[:, ::-1].sum(0, dtype=np.float32)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float stage[32];
    __shared__ u64 full, empty;
    int t = threadIdx.x, lane = t % 32;
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 32);
    }
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 3; ++i) {
        if (t < 32) {
            WAIT(&empty, (i & 1) ^ 1);
            stage[lane] = x[32 * i + lane];  /*@write*/
#ifndef RACY
            __syncwarp();
#endif
            if (lane == 0) ARRIVE(&full);
        } else {
            WAIT(&full, i & 1);
            sum += stage[31 - lane];  /*@read*/
            ARRIVE(&empty);
        }
    }
    if (t >= 32) out[lane] = sum;
}
