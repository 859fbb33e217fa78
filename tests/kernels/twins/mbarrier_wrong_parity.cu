// The first wait is for parity 1, the phase before the first, which counts as complete: it passes at once (R-M6). The second arrival
// comes after the read in the racy twin; if the phase had ended by then, the same wait would never pass.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: missing-wait @load @read severity=error
// allow: lifetime @load
// result: out = x[::-1]
#include "../mbarrier.cuh"
#ifdef RACY
#define FIRST_PARITY 1
#else
#define FIRST_PARITY 0
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(128) float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&full, 2);
        ARRIVE_EXPECT(&full, sizeof tile);
        BULK_LOAD(tile, x, sizeof tile, &full);  /*@load*/
    }
    __syncthreads();
#ifndef RACY
    if (threadIdx.x == 0) ARRIVE(&full);
#endif
    if (warp == 1) {
        WAIT(&full, FIRST_PARITY);
        out[lane] = tile[31 - lane];  /*@read*/
    }
    __syncthreads();
#ifdef RACY
    if (threadIdx.x == 0) ARRIVE(&full);
#endif
}
