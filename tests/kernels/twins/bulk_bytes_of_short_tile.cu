// The last tile is shorter, and the barrier expects the bytes of a whole one: its phase never completes (R-B6).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[200]=arange
// arg: out f32[200]=zeros
// arg: n i32=200
// expect: deadlock @wait severity=error
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out, int n) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(full, 1);
    __syncthreads();
    for (int k = 0; k * 64 < n; k++) {
        int left = min(64, n - k * 64);
        if (t == 0) {
#ifdef RACY
            expect(full, sizeof tile);  // announced
#else
            expect(full, left * 4);
#endif
            bulk_load(tile, x + k * 64, left * 4, full);  // copied
        }
        // Written out: a waiter is named by the line of the instruction itself.
        asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W; }" ::"r"(shared(&full)), "r"(k & 1) : "memory");  /*@wait*/
        if (t < left) out[k * 64 + t] = tile[t];
        __syncthreads();
    }
}
