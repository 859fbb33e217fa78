// The stage is handed back by three of the four warps that read it: the fourth to come arrives at the next phase already.
// launch: grid=1 block=160 arch=sm_90
// arg: x f32[256]=arange
// arg: out f32[128]=zeros
// expect: data-race WAR @read @load severity=error
// allow: barrier-misuse @init @arrive severity=error
// result: out = x.reshape(2, 128)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
#ifdef RACY
#define READERS 3
#else
#define READERS 4
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full, empty;
    __shared__ __align__(128) float tile[128];
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT(&empty, READERS);  /*@init*/
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (lane) return;
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
            if (k) WAIT(&empty, (k - 1) % 2);
            ARRIVE_EXPECT(&full, sizeof tile);
            BULK_LOAD(tile, x + 128 * k, sizeof tile, &full);  /*@load*/
        }
    } else {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
            WAIT(&full, k % 2);
            sum += tile[127 - threadIdx.x];  /*@read*/
            __syncwarp();
            if (lane == 0) ARRIVE(&empty);  /*@arrive*/
        }
        out[threadIdx.x] = sum;
    }
}
