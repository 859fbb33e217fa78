// A ring whose arrivals and waits are all relaxed: fences before the one and after the other order the data.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[256]=arange
// arg: out f32[32]=zeros
// result: out = x.reshape(8, 32)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full[2], empty[2];
    __shared__ float ring[2][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x < 2) {
        INIT(&full[threadIdx.x], 32);
        INIT(&empty[threadIdx.x], 32);
    }
    __syncthreads();
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        int stage = k % 2, parity = k / 2 % 2;
        if (warp == 0) {
            WAIT_RELAXED(&empty[stage], parity ^ 1);
            FENCE();
            ring[stage][lane] = x[k * 32 + lane];
            FENCE();
            ARRIVE_RELAXED(&full[stage]);
        } else {
            WAIT_RELAXED(&full[stage], parity);
            FENCE();
            sum += ring[stage][31 - lane];
            FENCE();
            ARRIVE_RELAXED(&empty[stage]);
        }
    }
    if (warp == 1) out[lane] = sum;
}
