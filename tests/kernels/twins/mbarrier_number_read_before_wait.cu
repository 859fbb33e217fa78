// A producer hands out numbers of tiles through a word in shared memory. The consumer reads the word, and waits for it only behind that. Its
// arrivals at other mbarriers have nothing to do with that word.
//
// launch: grid=1 block=64 arch=sm_90a
// arg:    x f32[4,32]=random
// arg:    out f32[4,32]=zeros
// expect: data-race @number @look severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 known, taken, full, empty;
    __shared__ int number;
    __shared__ float tile[32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&known, 1);
        INIT(&taken, 32);
        INIT(&full, 32);
        INIT(&empty, 32);
        number = 0;
    }
    __syncthreads();
    if (warp == 0) {
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            if (lane == 0) {
                WAIT(&taken, (k & 1) ^ 1);
                number = 3 - k;  /*@number*/
                ARRIVE(&known);
            }
            __syncwarp();
            WAIT(&empty, (k & 1) ^ 1);
            tile[lane] = x[k * 32 + lane];
            ARRIVE(&full);
        }
    } else {
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
#ifdef RACY
            const int row = number & 3;  /*@look*/
            WAIT(&known, k & 1);
#else
            WAIT(&known, k & 1);
            const int row = number & 3;
#endif
            ARRIVE(&taken);
            WAIT(&full, k & 1);
            out[row * 32 + lane] = tile[lane];
            ARRIVE(&empty);
        }
    }
}
