// A tile that came by cp.async stays in use while a ring goes through many more copies, each seen through a barrier of its stage.
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[5248]=random
// arg: out f32[64]=zeros
// result: out = (x[:128].reshape(2, 64) * x[128:].reshape(40, 2, 64)).sum(axis=(0, 1))
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 first, full[2], empty[2];
    __shared__ __align__(16) float kept[128], ring[2][128];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, t = threadIdx.x - 32;
    if (threadIdx.x == 0) {
        INIT(&first, 32);
        for (int k = 0; k < 2; k++) {
            INIT(&full[k], 32);
            INIT(&empty[k], 64);
        }
    }
    __syncthreads();
    if (warp == 0) {
        COPY16(&kept[4 * lane], x + 4 * lane);
        COPIES_ARRIVE_NOINC(&first);
    } else {
        WAIT(&first, 0);
    }
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 40; k++) {
        int stage = k % 2, parity = k / 2 % 2;
        if (warp == 0) {
            WAIT(&empty[stage], parity ^ 1);
            COPY16(&ring[stage][4 * lane], x + 128 + 128 * k + 4 * lane);
            COPIES_ARRIVE_NOINC(&full[stage]);
        } else {
            WAIT(&full[stage], parity);
            sum += kept[t] * ring[stage][t] + kept[64 + t] * ring[stage][64 + t];
            ARRIVE(&empty[stage]);
        }
    }
    if (warp) out[t] = sum;
}
