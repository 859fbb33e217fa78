// arrive.noComplete is for arrivals that leave some pending; the last one of the phase must not be of this form.
// What it does then is undefined, so no chip runs it.
// backends: cpu
// launch: grid=1 block=32 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @init @arrive severity=error
// allow: barrier-misuse
// result: out = x[::-1]
#include "../mbarrier.cuh"
#ifdef RACY
#define COUNT 2
#else
#define COUNT 3
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ float tile[32];
    int lane = threadIdx.x;
    tile[lane] = x[lane];
    __syncwarp();
    if (lane == 0) {
        u64 token;
        INIT(&full, COUNT);  /*@init*/
        ARRIVE_NO_COMPLETE(token, &full, 2);  /*@arrive*/
#ifndef RACY
        ARRIVE(&full);
#endif
        WAIT(&full, 0);
    }
    __syncwarp();
    out[lane] = tile[31 - lane];
}
