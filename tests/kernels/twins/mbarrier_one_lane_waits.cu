// One lane of a warp waits for the tile, and its warp meets behind the wait. In the racy twin the other lanes go on at once.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[32]=zeros
// expect: missing-wait RAW @load @read severity=error
// result: out = x.reshape(4, 32)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full[2], empty[2];
    __shared__ __align__(128) float tile[2][32];
    const int t = threadIdx.x, lane = t % 32;
    if (t < 2) {
        INIT(&full[t], 1);
        INIT(&empty[t], 1);
    }
    __syncthreads();
    if (t < 32) {
        for (int k = 0; k < 4 && lane == 0; k++) {
            WAIT(&empty[k & 1], (k >> 1 & 1) ^ 1);
            ARRIVE_EXPECT(&full[k & 1], sizeof tile[0]);
            BULK_LOAD(tile[k & 1], x + 32 * k, sizeof tile[0], &full[k & 1]);  /*@load*/
        }
    } else {
        float sum = 0;
        for (int k = 0; k < 4; k++) {
            if (lane == 0) WAIT(&full[k & 1], k >> 1 & 1);
#ifndef RACY
            __syncwarp();
#endif
            sum += tile[k & 1][31 - lane];  /*@read*/
            __syncwarp();
            if (lane == 0) ARRIVE(&empty[k & 1]);
        }
        out[lane] = sum;
    }
}
