// The consumer's loop has one turn more than the producer's: the last wait is for a tile that never comes.
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[32]=zeros
// expect: deadlock @wait severity=error
// result: out = x.reshape(4, 32)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
#ifdef RACY
#define TILES_READ 5
#else
#define TILES_READ 4
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full, empty;
    __shared__ __align__(128) float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT(&empty, 32);
    }
    __syncthreads();
    if (warp == 0) {
        if (lane) return;
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            WAIT(&empty, (k & 1) ^ 1);
            ARRIVE_EXPECT(&full, sizeof tile);
            BULK_LOAD(tile, x + 32 * k, sizeof tile, &full);
        }
    } else {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < TILES_READ; k++) {
            WAIT(&full, k & 1);  /*@wait*/
            sum += tile[31 - lane];
            ARRIVE(&empty);
        }
        out[lane] = sum;
    }
}
