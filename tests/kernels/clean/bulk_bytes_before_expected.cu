// Copies are issued, and may be complete, before the thread that consumes them says how many bytes it expects: the phase waits for its
// arrival, so that is legal.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[128]=arange
// arg: out f32[64]=zeros
// result: out = x[:64] + x[64:]
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float a[64], b[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        init(full, 1);
        bulk_load(a, x, sizeof a, full);
        bulk_load(b, x + 64, sizeof b, full);
    }
    __syncthreads();
    if (t == 32) expect(full, sizeof a + sizeof b);
    wait(full, 0);
    out[t] = a[t] + b[t];
}
