// All lanes of a warp initialise the barriers of a ring: 31 of them do so again, without inval (R-M2). The copies are followed all the same.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[256]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @init severity=error
// result: out = x.reshape(4, 64).sum(0)[::-1]
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[4][64];
    __shared__ u64 full[4];
    int t = threadIdx.x;
#ifdef RACY
    if (t < 32)
#else
    if (t == 0)
#endif
        for (int i = 0; i < 4; i++) init(full[i], 1);  /*@init*/
    __syncthreads();
    if (t == 0)
        for (int i = 0; i < 4; i++) {
            expect(full[i], sizeof tile[i]);
            bulk_load(tile[i], x + i * 64, sizeof tile[i], full[i]);
        }
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        wait(full[i], 0);
        sum += tile[i][63 - t];
    }
    out[t] = sum;
}
