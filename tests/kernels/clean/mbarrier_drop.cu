// Threads leave a barrier one warp after the other with arrive_drop; the rest go on with the smaller count.
// launch: grid=1 block=128 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// result: out = x[::-1] * (np.arange(128) // 32 + 1)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bar;
    __shared__ float tile[128];
    int t = threadIdx.x, warp = t / 32;
    float sum = 0;
    if (t == 0) INIT(&bar, 128);
    tile[t] = x[t];
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k <= warp; k++) {
        sum += tile[127 - t];
        if (k == warp) {
            ARRIVE_DROP(&bar);
        } else {
            ARRIVE(&bar);
            WAIT(&bar, k & 1);
        }
    }
    out[t] = sum;
}
