// Two copies of one phase; the barrier expects one: the phase is over before the second has come, and the read races with it. On a chip
// the copies may complete together: then no phase ends, nobody reads, and the bytes that nobody announced are all there is to report (R-B6).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[128]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @expect @second severity=error
// allow: missing-wait RAW @second @read severity=error
// allow: lifetime @second severity=error
// result: out = x[:64] + x[64:]
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float a[64], b[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        init(full, 1);
#ifdef RACY
        expect(full, sizeof a);  /*@expect*/
#else
        expect(full, sizeof a + sizeof b);
#endif
        bulk_load(a, x, sizeof a, full);
        bulk_load(b, x + 64, sizeof b, full);  /*@second*/
    }
    __syncthreads();
    wait(full, 0);
    out[t] = a[t] + b[t];  /*@read*/
}
