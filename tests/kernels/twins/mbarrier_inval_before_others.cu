// One thread invalidates the barrier as soon as it has seen the phase complete; a thread of another warp may still be waiting (R-M12).
// What that thread then waits for is undefined, so no chip runs it.
// launch: grid=1 block=64 arch=sm_90
// backends: cpu
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @inval severity=error
// allow: barrier-misuse
// allow: deadlock
// result: out = x
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) INIT(&full, 64);
    __syncthreads();
    ARRIVE(&full);
    WAIT(&full, 0);
#ifndef RACY
    __syncthreads();
#endif
    if (t == 0) INVAL(&full);  /*@inval*/
    out[t] = x[t];
}
