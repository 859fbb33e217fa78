// A thread refills a stage. In the racy twin its wait for the readers of the last round stands behind the refill.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[192]=arange
// arg: out f32[32]=zeros
// expect: data-race WAR @read @load severity=error
// allow: missing-wait severity=error
// allow: deadlock severity=error
// allow: barrier-misuse severity=error
// result: out = x.reshape(3, 64)[:, ::2].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float stage[64];
    __shared__ u64 full, empty;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 32);
    }
    __syncthreads();
    if (t == 32) {
        for (int k = 0; k < 3; k++) {
#ifndef RACY
            if (k > 0) WAIT(&empty, (k - 1) & 1);
#endif
            ARRIVE_EXPECT(&full, 256);
            BULK_LOAD(stage, x + 64 * k, 256, &full); /*@load*/
            WAIT(&full, k & 1);
#ifdef RACY
            if (k > 0) WAIT(&empty, (k - 1) & 1);
#endif
        }
    } else if (t < 32) {
        float sum = 0;
        for (int k = 0; k < 3; k++) {
            WAIT(&full, k & 1);
            sum += stage[2 * t]; /*@read*/
            ARRIVE(&empty);
        }
        out[t] = sum;
    }
}
