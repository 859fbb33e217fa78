// Split-K by turns, as nvFuser 2391 had it: each CTA waits for its number, adds its part, and lets the next one go on. Thread 0 sets the
// number after a barrier, but no thread publishes what it has stored.
//
// launch: grid=4 block=64
// arg:    tile f32[64]=zeros
// arg:    turn u32[1]=zeros
// expect: global-race @put @load severity=error
// allow:  global-race @put @put severity=error
// allow:  global-race @load @put severity=error
// result: tile = np.full(64, 10, np.float32)
extern "C" __global__ void kernel(float* tile, volatile unsigned* turn) {
    if (threadIdx.x == 0) {
        while (*turn != blockIdx.x) {}
        __threadfence();
    }
    __syncthreads();
    float sum = tile[threadIdx.x] + blockIdx.x + 1;  /*@load*/
    tile[threadIdx.x] = sum;                         /*@put*/
#ifndef RACY
    __threadfence();
#endif
    __syncthreads();
    if (threadIdx.x == 0) *turn = blockIdx.x + 1;
}
