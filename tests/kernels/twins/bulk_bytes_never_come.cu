// The barrier expects more bytes than the copy brings: the phase never completes (R-B6).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: deadlock @wait severity=error
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        init(full, 1);
#ifdef RACY
        expect(full, sizeof tile + 16);
#else
        expect(full, sizeof tile);
#endif
        bulk_load(tile, x, sizeof tile, full);
    }
    __syncthreads();
    // Written out: a waiter is named by the line of the instruction itself.
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(shared(&full)) : "memory");  /*@wait*/
    out[t] = tile[t];
}
