// Each thread waits with the token of the round before. In the first schedule all have arrived by then: that phase is two phases old, and the wait
// never ends. A thread that comes before the last arrival passes at once, and reads what others have not written.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[192]=arange
// arg: out f32[192]=zeros
// expect: data-race @write @read severity=error
// allow: deadlock
// result: out = x.reshape(3, 64)[:, ::-1].reshape(-1)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bar;
    __shared__ float tile[2][64];
    int t = threadIdx.x;
    u64 last = 0, token;
    if (t == 0) INIT(&bar, 64);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        tile[k % 2][t] = x[k * 64 + t];  /*@write*/
        ARRIVE_TOKEN(token, &bar);
#ifdef RACY
        WAIT_TOKEN(&bar, k == 2 ? last : token);
#else
        WAIT_TOKEN(&bar, token);
#endif
        out[k * 64 + t] = tile[k % 2][63 - t];  /*@read*/
        last = token;
    }
}
