// Two warps meet at an mbarrier behind a write and behind the reads. In the racy twin nobody waits behind the write of the last round.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[96]=arange
// arg: out f32[32]=zeros
// expect: data-race RAW @write @read severity=error
// allow: barrier-misuse severity=error
// result: out = x.reshape(3, 32)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[32];
    __shared__ u64 bar;
    const int t = threadIdx.x;
    if (t == 0) INIT(&bar, 64);
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 3; k++) {
        u64 token;
        if (t >= 32) tile[t - 32] = x[32 * k + t - 32]; /*@write*/
        ARRIVE_TOKEN(token, &bar);
#ifdef RACY
        if (k < 2) WAIT_TOKEN(&bar, token);
#else
        WAIT_TOKEN(&bar, token);
#endif
        if (t < 32) sum += tile[31 - t]; /*@read*/
        ARRIVE_TOKEN(token, &bar);
        WAIT_TOKEN(&bar, token);
    }
    if (t < 32) out[t] = sum;
}
