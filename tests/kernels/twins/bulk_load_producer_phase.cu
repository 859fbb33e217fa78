// The producer begins with the parity of a phase that is over. In the racy twin it never turns it: no wait for `empty` holds it back.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[256]=arange
// backends: cpu
// arg: out f32[32]=zeros
// expect: missing-wait WAW @load severity=error
// allow: missing-wait @load @read severity=error
// allow: data-race @load @read severity=error
// allow: barrier-misuse severity=error
// allow: deadlock severity=error
// result: out = x.reshape(8, 32)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(128) float tile[2][32];
    __shared__ u64 full[2], empty[2];
    const int t = threadIdx.x, lane = t % 32;
    if (t < 2) {
        INIT(&full[t], 1);
        INIT(&empty[t], 32);
    }
    __syncthreads();
    if (t < 32) {
        for (int k = 0; k < 8 && lane == 0; k++) {
#ifdef RACY
            WAIT(&empty[k & 1], 1);
#else
            WAIT(&empty[k & 1], (k >> 1 & 1) ^ 1);
#endif
            ARRIVE_EXPECT(&full[k & 1], sizeof tile[0]);
            BULK_LOAD(tile[k & 1], x + 32 * k, sizeof tile[0], &full[k & 1]);  /*@load*/
        }
    } else {
        float sum = 0;
        for (int k = 0; k < 8; k++) {
            WAIT(&full[k & 1], k >> 1 & 1);
            sum += tile[k & 1][31 - lane];  /*@read*/
            ARRIVE(&empty[k & 1]);
        }
        out[lane] = sum;
    }
}
