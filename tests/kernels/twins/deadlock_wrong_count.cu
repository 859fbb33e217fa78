// The barrier is initialised with the number of threads, and only one lane of each warp arrives.
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=1 block=128 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: deadlock @wait severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
#ifdef RACY
#define COUNT 128
#else
#define COUNT 4
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bar;
    __shared__ float tile[128];
    int t = threadIdx.x;
    if (t == 0) INIT(&bar, COUNT);
    __syncthreads();
    tile[t] = x[t];
    __syncwarp();
    if (t % 32 == 0) ARRIVE(&bar);
    WAIT(&bar, 0);  /*@wait*/
    out[t] = tile[127 - t];
}
