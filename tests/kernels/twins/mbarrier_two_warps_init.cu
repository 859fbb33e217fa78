// The first lane of each warp initialises the same barriers: an object that is in use must not be initialised again (R-M2).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @init @init severity=error
// allow: data-race WAW @init @init
// allow: barrier-misuse
// result: out = x[::-1]
#include "../mbarrier.cuh"
#ifdef RACY
#define INITIALISES (threadIdx.x % 32 == 0)
#else
#define INITIALISES (threadIdx.x == 0)
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full[2];
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (INITIALISES) {
        for (int k = 0; k < 2; k++) INIT(&full[k], 64);  /*@init*/
    }
    __syncthreads();
    tile[t] = x[t];
    ARRIVE(&full[0]);
    WAIT(&full[0], 0);
    out[t] = tile[63 - t];
}
