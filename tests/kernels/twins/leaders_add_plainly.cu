// Lanes with one key elect a leader, which adds for all of them: leaders of two warps add to one bin. The old sum is handed on in a register
// that other lanes set to zero.
// launch: grid=1 block=64
// arg: keys u32[64]=random
// arg: out u32[8]=zeros
// expect: data-race @add @add severity=error
// allow: data-race @add @add
// result: out = np.bincount(keys % 8, minlength=8)
extern "C" __global__ void kernel(const unsigned* keys, unsigned* out) {
    __shared__ unsigned bins[8];
    unsigned t = threadIdx.x, lane = t % 32;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    unsigned key = keys[t] % 8, peers = __match_any_sync(~0u, key), leader = __ffs(peers) - 1, old = 0;
    if (lane == leader) {
#ifdef RACY
        old = bins[key]; /*@add*/
        bins[key] = old + __popc(peers); /*@add*/
#else
        old = atomicAdd(&bins[key], __popc(peers));
#endif
    }
    old = __shfl_sync(peers, old, leader);
    if (old > 64) __trap();
    __syncthreads();
    if (t < 8) out[t] = bins[t];
}
