// More bytes are announced than a barrier can count, 2**20 - 1 (R-M4). What then happens is undefined, so no chip runs it.
// backends: cpu
// launch: grid=1 block=32 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @expect severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
#ifdef RACY
#define BYTES 0xfffffu
#else
#define BYTES 0x10u
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ float tile[32];
    int lane = threadIdx.x;
    if (lane == 0) {
        INIT(&full, 1);
#pragma unroll 1
        for (int k = 0; k < 2; k++) EXPECT_TX(&full, BYTES);  /*@expect*/
#pragma unroll 1
        for (int k = 0; k < 2; k++) COMPLETE_TX(&full, BYTES);
    }
    tile[lane] = x[lane];
    __syncwarp();
    if (lane == 0) ARRIVE(&full);
    __syncwarp();
    WAIT(&full, 0);
    out[lane] = tile[31 - lane];
}
