// Three warps arrive where the count is two. With one round nobody comes to harm: the third arrival stays in a phase that nobody waits for. With
// more rounds it would count for the next one (R-M3).
// launch: grid=1 block=128 arch=sm_90
// arg: x f32[96]=random
// arg: out f32[32]=zeros
// expect: barrier-misuse @init @arrive severity=warning
// result: out = x[:32] + x[32:64]
#include "../mbarrier.cuh"
#ifdef RACY
#define WRITERS 3
#else
#define WRITERS 2
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ float tile[64];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) INIT(&full, 2);  /*@init*/
    __syncthreads();
    if (warp < 2) tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (warp < WRITERS && lane == 0) ARRIVE(&full);  /*@arrive*/
    if (warp < 3) return;
    WAIT(&full, 0);
    out[lane] = tile[lane] + tile[lane + 32];
}
