// Each lane announces the bytes of its row, and lane 0 arrives for all. In the racy twin it does so in no order with the other lanes: the phase
// can end with the bytes of lane 0 alone.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[256]=random
// arg: out f32[32]=zeros
// expect: barrier-misuse @announce severity=error
// allow: missing-wait severity=error
// allow: lifetime severity=error
// result: out = x.reshape(2, 4, 32).sum(axis=(0, 1), dtype=np.float32)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[128];
    __shared__ u64 full, empty;
    const int t = threadIdx.x, lane = t % 32;
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 32);
    }
    __syncthreads();
    if (t < 4) {
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
            WAIT(&empty, k ^ 1);
#ifdef RACY
            if (t == 0) ARRIVE_EXPECT(&full, 128);
            else EXPECT_TX(&full, 128); /*@announce*/
#else
            EXPECT_TX(&full, 128);
            __syncwarp(15);
            if (t == 0) ARRIVE(&full);
#endif
            BULK_LOAD(tile + 32 * t, x + 128 * k + 32 * t, 128, &full);
        }
    } else if (t >= 32) {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
            WAIT(&full, k);
            for (int row = 0; row < 4; row++) sum += tile[32 * row + lane];
            ARRIVE(&empty);
        }
        out[lane] = sum;
    }
}
