// One lane of the producer waits until the slot is free, and the other lanes write it without bar.warp.sync: they have not waited (R-W1).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[128]=random
// arg: out f32[128]=zeros
// expect: data-race WAR @read @write severity=error
// result: out = x.reshape(4, 32)[:, ::-1].reshape(128)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full, empty;
    __shared__ float slot[32];
    int t = threadIdx.x, lane = t % 32;
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 1);
    }
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 4; k++) {
        if (t < 32) {
            if (lane == 0 && k > 0) WAIT(&empty, (k - 1) & 1);
#ifndef RACY
            __syncwarp();
#endif
            slot[lane] = x[k * 32 + lane];  /*@write*/
            __syncwarp();
            if (lane == 0) ARRIVE(&full);
        } else {
            WAIT(&full, k & 1);
            out[k * 32 + lane] = slot[31 - lane];  /*@read*/
            __syncwarp();
            if (lane == 0) ARRIVE(&empty);
        }
    }
}
