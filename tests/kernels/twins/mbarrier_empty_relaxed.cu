// The producer does not wait until the stage has been read. What it does wait for, relaxed arrivals from before the reads, orders
// nothing; it only keeps the barrier from running two phases ahead of a consumer.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[32]=zeros
// expect: data-race WAR @read @load severity=error
// allow: missing-wait WAW @load @load
// result: out = x.reshape(4, 32)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full, empty, seen;
    __shared__ __align__(128) float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT(&empty, 32);
        INIT(&seen, 32);
    }
    __syncthreads();
    if (warp == 0) {
        if (lane) return;
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            if (k) WAIT_RELAXED(&seen, (k - 1) % 2);
#ifndef RACY
            if (k) WAIT(&empty, (k - 1) % 2);
#endif
            ARRIVE_EXPECT(&full, sizeof tile);
            BULK_LOAD(tile, x + 32 * k, sizeof tile, &full);  /*@load*/
        }
    } else {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            WAIT(&full, k % 2);
            ARRIVE_RELAXED(&seen);
            sum += tile[31 - lane];  /*@read*/
#ifndef RACY
            ARRIVE(&empty);
#endif
        }
        out[lane] = sum;
    }
}
