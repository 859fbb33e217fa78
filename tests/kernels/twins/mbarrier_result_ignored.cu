// One try_wait, and nobody looks at whether it has returned true: it may have come back at its time limit (R-M14, found in the text).
// Whether that happens in a run is luck, and with it whether the read is too early.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @wait severity=error
// allow: missing-wait @load @read
// allow: lifetime @load
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(128) float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        ARRIVE_EXPECT(&full, sizeof tile);
        BULK_LOAD(tile, x, sizeof tile, &full);  /*@load*/
    }
    __syncthreads();
    if (warp == 1) {
#ifdef RACY
        u32 unused;
        ATTEMPT(unused, "try_wait.parity", &full, "r", 0u);  /*@wait*/
#else
        WAIT(&full, 0);
#endif
        out[lane] = tile[31 - lane];  /*@read*/
    }
}
