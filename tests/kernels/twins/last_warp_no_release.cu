// The last warp that counts in shared memory sums up what all have left: a fence behind the count acquires, and none before it releases.
// launch: grid=1 block=128
// arg: x f32[128]=random
// arg: out f32[1]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x.sum(keepdims=True)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float part[4];
    __shared__ unsigned count;
    int t = threadIdx.x, lane = t % 32;
    if (t == 0) count = 0;
    __syncthreads();
    float v = x[t];
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    unsigned ticket = 0;
    if (lane == 0) {
        part[t / 32] = v;  /*@write*/
#ifndef RACY
        __threadfence_block();
#endif
        ticket = atomicAdd(&count, 1);
        __threadfence_block();
    }
    ticket = __shfl_sync(~0u, ticket, 0);
    if (ticket == 3) {
        __syncwarp();
        if (lane == 0) out[0] = part[0] + part[1] + part[2] + part[3];  /*@read*/
    }
}
