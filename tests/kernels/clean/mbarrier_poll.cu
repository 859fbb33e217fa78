// Loops around test_wait, by parity and by token, with work between the attempts.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// result: out = 2 * x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bar;
    __shared__ float tile[64];
    int t = threadIdx.x;
    u32 done = 0, attempts = 0;
    u64 token;
    if (t == 0) INIT(&bar, 64);
    __syncthreads();
    tile[t] = x[t];
    ARRIVE_TOKEN(token, &bar);
    while (!done) {
        ATTEMPT(done, "test_wait", &bar, "l", token);
        attempts++;
    }
    float value = tile[63 - t];
    ARRIVE(&bar);
    POLL(&bar, 1);
    tile[t] = value;
    ARRIVE_TOKEN(token, &bar);
    POLL_TOKEN(&bar, token);
    ARRIVE_TOKEN(token, &bar);
    WAIT_TOKEN(&bar, token);
    out[t] = (tile[t] + tile[t ^ 1 ^ 1]) * (attempts > 0);
}
