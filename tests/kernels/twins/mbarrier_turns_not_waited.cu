// Four warps fill two slots and a fifth one takes out, and it does not wait for the four: their arrivals run ahead. The count is right (R-M5).
// launch: grid=1 block=160 arch=sm_90
// arg: x i32[8]=arange
// arg: out i32[8]=zeros
// expect: barrier-misuse severity=error
// allow: barrier-misuse|data-race|deadlock severity=error
// result: out = x
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; i++) {
            INIT(&full[i], 128);
            INIT(&empty[i], 1);
        }
    __syncthreads();
    for (unsigned round = 0; round < 8; ++round) {
        if (threadIdx.x < 128) {
            if (round > 1) WAIT(&empty[round % 2], round / 2 - 1 & 1);
            if (threadIdx.x == 0) out[round] = x[round];
            ARRIVE(&full[round % 2]);
        } else if (threadIdx.x == 128) {
#ifndef RACY
            WAIT(&full[round % 2], round / 2 & 1);
#endif
            ARRIVE(&empty[round % 2]);
        }
    }
}
