// A store warp waits for the stage that the others fill. In the racy twin these fence and arrive before they fill it.
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: data-race RAW @fill @store severity=error
// result: out = x + 1
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(128) float stage[64];
    __shared__ u64 full, empty;
    const int t = threadIdx.x;
    if (t == 0) {
        init(full, 64);
        init(empty, 1);
    }
    __syncthreads();
    if (t < 32) {
        if (t) return;
        for (int k = 0; k < 4; k++) {
            wait(full, k & 1);
            bulk_store(out + 64 * k, stage, sizeof stage);  /*@store*/
            bulk_commit();
            bulk_wait_read<0>();
            arrive(empty);
        }
        bulk_wait<0>();
    } else {
        for (int k = 0; k < 4; k++) {
            wait(empty, (k & 1) ^ 1);
#ifdef RACY
            fence_async_shared();
            arrive(full);
#endif
            stage[t - 32] = x[64 * k + t - 32] + 1;  /*@fill*/
#ifndef RACY
            fence_async_shared();
            arrive(full);
#endif
        }
    }
}
