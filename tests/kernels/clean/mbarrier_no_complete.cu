// arrive.noComplete for arrivals that leave some pending, arrivals with a count, and pending_count of a token.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// result: out = x[::-1] + 3
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bar;
    __shared__ float tile[64];
    __shared__ u32 left;
    int t = threadIdx.x;
    tile[t] = x[t];
    __syncthreads();
    if (t == 0) {
        u64 token;
        u32 pending;
        INIT(&bar, 6);
        ARRIVE_NO_COMPLETE(token, &bar, 3);
        ARRIVE_TOKEN(token, &bar);
        asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(token));
        left = pending;
        ARRIVE_COUNT(&bar, 2);
        WAIT(&bar, 0);
    }
    __syncthreads();
    WAIT(&bar, 0);
    out[t] = tile[63 - t] + left;
}
