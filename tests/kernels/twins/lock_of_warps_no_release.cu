// Warps add to sums in shared memory, one at a time, under a lock in shared memory. Without the fence before it is freed nothing publishes the
// sums (8.8): the report names that fence, and no atomic operation.
// launch: grid=1 block=128
// arg: x f32[128]=random
// arg: out f32[32]=zeros
// expect: data-race @sum @sum severity=error
// result: out = x.reshape(4, 32).sum(0)[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float sums[32];
    __shared__ int lock;
    int t = threadIdx.x, lane = t % 32;
    if (t < 32) sums[t] = 0;
    if (t == 0) lock = 0;
    __syncthreads();
    if (lane == 0) {
        while (atomicCAS(&lock, 0, 1)) __nanosleep(20);
        __threadfence_block();
    }
    __syncwarp();
    sums[31 - lane] += x[t]; /*@sum*/
    __syncwarp();
    if (lane == 0) {
#ifndef RACY
        __threadfence_block();
#endif
        atomicExch(&lock, 0);
    }
    __syncthreads();
    if (t < 32) out[t] = sums[t];
}
