// A ring of one stage, handed over by threads. In the racy twin the producer fills the stage again without a wait for `empty`:
// the phase goes on unwaited for, or the write and the read race, as luck has it.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[32]=zeros
// expect: data-race|barrier-misuse severity=error
// allow: deadlock severity=error
// result: out = x.reshape(4, 32)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float stage[32];
    __shared__ u64 full, empty;
    const int t = threadIdx.x, lane = t % 32;
    if (t == 0) {
        INIT(&full, 32);
        INIT(&empty, 32);
    }
    __syncthreads();
    if (t < 32) {
        for (int k = 0; k < 4; k++) {
#ifndef RACY
            WAIT(&empty, (k & 1) ^ 1);
#endif
            stage[lane] = x[32 * k + lane];
            ARRIVE(&full);
        }
    } else {
        float sum = 0;
        for (int k = 0; k < 4; k++) {
            WAIT(&full, k & 1);
            sum += stage[31 - lane];
            ARRIVE(&empty);
        }
        out[lane] = sum;
    }
}
