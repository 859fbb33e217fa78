// R-B6, R-M7: two copies fill a stage, and the expect_tx counts the first one only. The bytes of the second one are left for the next phase,
// so the waits of later rounds return too early, and the pipeline stops.
//
// launch: grid=1 block=64 arch=sm_90
// arg:    x f32[6,192]=random
// arg:    out f32[32]=zeros
// expect: barrier-misuse @announce @second severity=error
// allow:  deadlock severity=error
// allow:  missing-wait severity=error
// allow:  data-race severity=error
// allow:  barrier-misuse severity=error
// allow:  lifetime severity=error
// result: out = x.reshape(6, 3, 2, 32).sum((0, 1, 2))
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float a[2][128], b[2][64];
    __shared__ alignas(8) u64 full[2], empty[2];
    const int t = threadIdx.x;
    if (t == 0)
        for (int i = 0; i < 2; i++) {
            INIT(&full[i], 1);
            INIT(&empty[i], 32);
        }
    __syncthreads();
    if (t == 32)
        for (int k = 0; k < 6; k++) {
            const int s = k & 1;
            WAIT(&empty[s], (k >> 1 & 1) ^ 1);
#ifdef RACY
            ARRIVE_EXPECT(&full[s], sizeof a[s]);  /*@announce*/
#else
            ARRIVE_EXPECT(&full[s], sizeof a[s] + sizeof b[s]);
#endif
            BULK_LOAD(a[s], x + k * 192, sizeof a[s], &full[s]);
            BULK_LOAD(b[s], x + k * 192 + 128, sizeof b[s], &full[s]);  /*@second*/
        }
    if (t >= 32) return;
    float sum = 0;
    for (int k = 0; k < 6; k++) {
        const int s = k & 1;
        WAIT(&full[s], k >> 1 & 1);
        for (int i = 0; i < 4; i++) sum += a[s][i * 32 + t];
        sum += b[s][t] + b[s][32 + t];
        ARRIVE(&empty[s]);
    }
    out[t] = sum;
}
