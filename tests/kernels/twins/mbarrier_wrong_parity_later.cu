// The parity does not flip from one tile to the next: the second wait is for the phase that is over already (R-M6).
// If the second phase is over, too, that wait is for the third one: for ever.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[32]=zeros
// expect: data-race RAW @write @read severity=error
// allow: deadlock severity=error
// result: out = x[31::-1] + x[:31:-1]
#include "../mbarrier.cuh"
#ifdef RACY
#define PARITY(tile) 0
#else
#define PARITY(tile) (tile)
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full, empty;
    __shared__ float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&full, 32);
        INIT(&empty, 32);
    }
    __syncthreads();
    if (warp == 0) {
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
            if (k) WAIT(&empty, 0);
            tile[lane] = x[k * 32 + lane];  /*@write*/
            ARRIVE(&full);
        }
    } else {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
            WAIT(&full, PARITY(k));
            sum += tile[31 - lane];  /*@read*/
            if (k == 0) ARRIVE(&empty);
        }
        out[lane] = sum;
    }
}
