// The last tile is taken for a partial one, and half of its bytes are announced; the tensor is padded, so both copies bring all of theirs. The
// second copy is counted in the next phase, which nobody waits for (R-M7).
// backends: cpu
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[3,128]=arange
// arg: out f32[3,64]=zeros
// expect: barrier-misuse @expect @second severity=error
// allow: data-race @second @read severity=error
// allow: missing-wait @second @read severity=error
// allow: lifetime @second severity=error
// result: out = x[:, :64] + x[:, 64:]
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float a[128];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(full, 1);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        if (t == 0) {
#ifdef RACY
            expect(full, k == 2 ? 256 : 512);  /*@expect*/
#else
            expect(full, 512);
#endif
            bulk_load(a, x + k * 128, 256, full);
            bulk_load(a + 64, x + k * 128 + 64, 256, full);  /*@second*/
        }
        wait(full, k & 1);
        out[k * 64 + t] = a[t] + a[t + 64];  /*@read*/
        __syncthreads();
    }
}
