// One warp waits for the copy. The number of its warp comes from a shuffle, so the text does not tell which threads do.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: missing-wait @load @read severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(128) float tile[64];
    int t = threadIdx.x, warp = __shfl_sync(0xFFFFFFFF, t / 32, 0);
    if (t == 0) INIT(&full, 1);
    __syncthreads();
    if (t == 0) {
        ARRIVE_EXPECT(&full, sizeof tile);
        BULK_LOAD(tile, x, sizeof tile, &full);  /*@load*/
    }
#ifdef RACY
    if (warp == 0) WAIT(&full, 0);
#else
    if (warp < 2) WAIT(&full, 0);
#endif
    out[t] = tile[63 - t];  /*@read*/
}
