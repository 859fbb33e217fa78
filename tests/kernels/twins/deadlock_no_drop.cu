// A warp leaves the loop early without arrive_drop: the barrier goes on counting it, and the others wait for it for ever.
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: deadlock @wait severity=error
// result: out = np.where(np.arange(64) < 32, 4, 2) * x
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bar;
    int t = threadIdx.x, turns = t < 32 ? 4 : 2;
    float sum = 0;
    if (t == 0) INIT(&bar, 64);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < turns; k++) {
        sum += x[t];
#ifndef RACY
        if (t >= 32 && k == turns - 1) {
            ARRIVE_DROP(&bar);
            break;
        }
#endif
        ARRIVE(&bar);
        WAIT(&bar, k & 1);  /*@wait*/
    }
    out[t] = sum;
}
