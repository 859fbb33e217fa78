// One lane of the consumer warp hands the stage back for all. In the racy twin it has read the stage itself, and waits for no other lane.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[32]=zeros
// expect: missing-wait @load @read severity=error
// result: out = x.reshape(4, 32)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full, empty;
    __shared__ __align__(128) float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT(&empty, 1);
    }
    __syncthreads();
    if (warp == 0) {
        if (lane) return;
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            if (k) WAIT(&empty, (k - 1) % 2);
            ARRIVE_EXPECT(&full, sizeof tile);
            BULK_LOAD(tile, x + 32 * k, sizeof tile, &full);  /*@load*/
        }
    } else {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            WAIT(&full, k % 2);
            __syncwarp();
            sum += tile[31 - lane];  /*@read*/
#ifndef RACY
            __syncwarp();
#endif
            if (lane == 31) ARRIVE(&empty);
        }
        out[lane] = sum;
    }
}
