// Peterson's algorithm in shared memory: each of two warps raises its flag, gives way, and waits while the other's flag is up and it is not its
// turn. One thread has lowered both flags at first. Without fence.sc between stores and loads in both, both may work (R-MO2). The second warp
// begins when the first one works, and that one works until the second one has looked: so it is in every schedule.
// launch: grid=1 block=64
// arg: out u32[1]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.full(1, 2)
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ volatile unsigned flags[2], turn, begun, looked;
    __shared__ unsigned count;
    unsigned w = threadIdx.x / 32;
    if (threadIdx.x == 0) flags[0] = flags[1] = turn = begun = looked = count = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        if (w) while (!begun) {}
        flags[w] = 1;  /*@store*/
        turn = w ^ 1;
#ifndef RACY
        __threadfence_block();
#endif
        while (flags[w ^ 1] && turn != w) looked = 1;  /*@load*/
        if (w == 0) begun = 1;
        if (w == 0) while (!looked) {}
        looked = 1;
        __threadfence_block();
        count++;
        __threadfence_block();
        flags[w] = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = count;
}
