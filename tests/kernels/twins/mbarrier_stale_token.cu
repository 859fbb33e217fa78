// The reader waits with the token of an earlier phase, which is over already. It does not arrive again, so that the phase
// after that cannot end meanwhile: a token two phases old would be taken for one of the current phase.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 bar;
    __shared__ float tile[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u64 first, second;
    if (threadIdx.x == 0) INIT(&bar, 64);
    __syncthreads();
    ARRIVE_TOKEN(first, &bar);
    WAIT_TOKEN(&bar, first);
    if (warp == 0) tile[lane] = x[lane];  /*@write*/
#ifdef RACY
    second = first;
    if (warp == 0) ARRIVE(&bar);
#else
    ARRIVE_TOKEN(second, &bar);
#endif
    if (warp == 1) {
        POLL_TOKEN(&bar, second);
        out[lane] = tile[31 - lane];  /*@read*/
    }
}
