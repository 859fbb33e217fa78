// One lane of each of two consumer warps hands the stage back for its warp. In the racy twin it does so before it has read the stage itself.
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[256]=arange
// arg: out f32[64]=zeros
// expect: missing-wait @load @read severity=error
// allow: data-race WAR @read @load
// result: out = x.reshape(4, 64)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full, empty;
    __shared__ __align__(128) float tile[64];
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT(&empty, 2);
    }
    __syncthreads();
    if (threadIdx.x >= 64) {
        if (threadIdx.x > 64) return;
        for (int k = 0; k < 4; k++) {
            WAIT(&empty, (k & 1) ^ 1);
            ARRIVE_EXPECT(&full, sizeof tile);
            BULK_LOAD(tile, x + 64 * k, sizeof tile, &full);  /*@load*/
        }
    } else {
        float sum = 0;
        for (int k = 0; k < 4; k++) {
            WAIT(&full, k & 1);
#ifdef RACY
            if (threadIdx.x % 32 == 0) ARRIVE(&empty);
            sum += tile[63 - threadIdx.x];  /*@read*/
#else
            sum += tile[63 - threadIdx.x];  /*@read*/
            __syncwarp();
            if (threadIdx.x % 32 == 0) ARRIVE(&empty);
#endif
        }
        out[threadIdx.x] = sum;
    }
}
