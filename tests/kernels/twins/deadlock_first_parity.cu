// The producer of a ring begins with parity 0: it waits for a stage to be freed that nobody has filled.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[4,32]=random
// arg: out f32[32]=zeros
// expect: deadlock severity=error
// result: out = x.sum(0)
#include "../mbarrier.cuh"
#ifdef RACY
#define FIRST 0
#else
#define FIRST 1
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(16) float ring[2][32];
    __shared__ u64 full[2], empty[2];
    const int t = threadIdx.x;
    if (t == 0)
        for (int s = 0; s < 2; s++) {
            INIT(&full[s], 1);
            INIT(&empty[s], 32);
        }
    __syncthreads();
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 4; k++) {
        const int s = k & 1;
        if (t == 32) {
            WAIT(&empty[s], (k / 2 & 1) ^ FIRST);
            ARRIVE_EXPECT(&full[s], 128);
            BULK_LOAD(ring[s], x + 32 * k, 128, &full[s]);
        } else if (t < 32) {
            WAIT(&full[s], k / 2 & 1);
            sum += ring[s][t];
            ARRIVE(&empty[s]);
        }
    }
    if (t < 32) out[t] = sum;
}
