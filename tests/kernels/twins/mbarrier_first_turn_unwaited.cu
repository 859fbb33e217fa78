// Both slots of a ring are free at first: a thread arrives at each empty mbarrier. The producer fills the first slot without a wait for that
// phase, and the consumer's arrival ends the next one. A barrier orders the two arrivals, so the count is right: a wait lacks (R-M5, D11).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[96]=arange
// arg: out f32[96]=zeros
// expect: barrier-misuse @arrive severity=error
// result: out = x
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full[2], empty[2];
    __shared__ float tile[2][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0)
        for (int slot = 0; slot < 2; slot++) {
            INIT(&full[slot], 32);
            INIT(&empty[slot], 1);
        }
    __syncthreads();
    if (threadIdx.x == 0)
        for (int slot = 0; slot < 2; slot++) ARRIVE(&empty[slot]);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        int slot = k % 2, parity = k / 2;
        if (warp == 0) {
#ifdef RACY
            if (k > 0)
#endif
                WAIT(&empty[slot], parity);
            tile[slot][lane] = x[k * 32 + lane];
            ARRIVE(&full[slot]);
        } else {
            WAIT(&full[slot], parity);
            out[k * 32 + lane] = tile[slot][lane];
            __syncwarp();
            if (lane == 0) ARRIVE(&empty[slot]);  /*@arrive*/
        }
    }
}
