// Two copies are issued before their bytes are announced, and one is left out: the phase is over when one has landed and the other has not, or
// it never is (R-M7). The schedule decides which; on a chip a launch may hang.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[128]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse|deadlock|missing-wait severity=error
// result: out = x[:64] + x[64:]
// backends: cpu
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float a[64], b[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        init(full, 1);
        bulk_load(a, x, sizeof a, full);
        bulk_load(b, x + 64, sizeof b, full);
#ifdef RACY
        expect(full, sizeof a);
#else
        expect(full, sizeof a + sizeof b);
#endif
    }
    __syncthreads();
    wait(full, 0);
    out[t] = a[t] + b[t];
}
