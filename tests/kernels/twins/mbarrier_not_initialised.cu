// Arrival at a barrier that nobody has initialised: the loop stops one short (R-M1).
// What an arrival does to such memory is undefined, so no chip runs it.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @arrive severity=error
// allow: barrier-misuse @wait
// allow: data-race RAW @write @read
// result: out = x.reshape(2, 32)[::-1].reshape(-1)
#include "../mbarrier.cuh"
#ifdef RACY
#define BARRIERS 1
#define WAIT_FOR(bar) POLL_A_WHILE(bar, 0)
#else
#define BARRIERS 2
#define WAIT_FOR(bar) WAIT(bar, 0)
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 done[2];
    __shared__ float tile[64];
    int t = threadIdx.x, warp = t / 32;
    if (t == 0) {
        for (int k = 0; k < BARRIERS; k++) INIT(&done[k], 32);
    }
    __syncthreads();
    tile[t] = x[t];  /*@write*/
    ARRIVE(&done[warp]);  /*@arrive*/
    WAIT_FOR(&done[1 - warp]);  /*@wait*/
    out[t] = tile[t ^ 32];  /*@read*/
}
