// Two warps hand a stage back, and the count is one: the arrival of the warp that comes first completes the phase, that of the other one the
// next phase (R-M3). The producer goes on too early, and the count is the cause.
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[4,64]=random
// arg: out f32[64]=zeros
// expect: barrier-misuse @init @arrive severity=error
// allow: data-race severity=error
// allow: missing-wait severity=error
// allow: barrier-misuse severity=error
// allow: deadlock severity=error
// result: out = x[:, ::-1].sum(axis=0, dtype=np.float64).astype(np.float32)
#include "../mbarrier.cuh"
#ifdef RACY
#define READERS 1
#else
#define READERS 2
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full, empty;
    __shared__ __align__(128) float tile[64];
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT(&empty, READERS);  /*@init*/
    }
    __syncthreads();
    if (threadIdx.x >= 64) {
        if (lane) return;
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            WAIT(&empty, k % 2 ^ 1);
            ARRIVE_EXPECT(&full, sizeof tile);
            BULK_LOAD(tile, x + 64 * k, sizeof tile, &full);
        }
    } else {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            WAIT(&full, k % 2);
            sum += tile[63 - threadIdx.x];
            __syncwarp();
            if (lane == 0) ARRIVE(&empty);  /*@arrive*/
        }
        out[threadIdx.x] = sum;
    }
}
