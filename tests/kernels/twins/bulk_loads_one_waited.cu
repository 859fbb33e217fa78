// Two tiles come on barriers of their own, and the racy kernel waits for the first one twice. Nobody waits for the second one: that is a missing
// wait (R-B1), and no refill that comes too early.
// launch: grid=1 block=64 arch=sm_90a
// arg: a f32[192]=arange
// arg: b f32[192]=arange
// arg: out f32[192]=zeros
// expect: missing-wait RAW @load @read severity=error
// allow: missing-wait WAW @load severity=error
// allow: lifetime @load severity=error
// allow: barrier-misuse @load severity=error
// result: out = a * b
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* a, const float* b, float* out) {
    __shared__ alignas(128) float left[64];
    __shared__ alignas(128) float right[64];
    __shared__ u64 first, second;
    int t = threadIdx.x;
    if (t == 0) init(first, 1), init(second, 1);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        if (t == 0) {
            expect(first, sizeof left);
            bulk_load(left, a + k * 64, sizeof left, first);
            expect(second, sizeof right);
            bulk_load(right, b + k * 64, sizeof right, second);  /*@load*/
        }
        wait(first, k & 1);
#ifdef RACY
        wait(first, k & 1);
#else
        wait(second, k & 1);
#endif
        out[k * 64 + t] = left[t] * right[t];  /*@read*/
        __syncthreads();
    }
}
