// Half of the threads wait at a named barrier for the other half, which waits at an mbarrier for the first.
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=1 block=128 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: deadlock @named @mbarrier severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bar;
    __shared__ float tile[128];
    int t = threadIdx.x;
    if (t == 0) INIT(&bar, 64);
    __syncthreads();
    tile[t] = x[t];
    if (t < 64) {
#ifndef RACY
        ARRIVE(&bar);
#endif
        asm volatile("bar.sync 1, 128;" ::: "memory");  /*@named*/
#ifdef RACY
        ARRIVE(&bar);
#endif
    } else {
        WAIT(&bar, 0);  /*@mbarrier*/
        asm volatile("bar.sync 1, 128;" ::: "memory");
    }
    out[t] = tile[127 - t];
}
