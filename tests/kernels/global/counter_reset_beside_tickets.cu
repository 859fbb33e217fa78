// G1: one CTA sets a counter of tickets to zero by a plain store, while others may have taken tickets. No fence helps: that is for a launch
// of its own.
//
// launch: grid=3 block=32
// arg:    next u32[1]=zeros
// arg:    out u32[8]=zeros
// expect: global-race @reset @ticket severity=error
// allow:  global-race @taken severity=warning
// result: out = np.arange(8)
extern "C" __global__ void kernel(unsigned* next, unsigned* out) {
    __shared__ unsigned tile;
#ifdef RACY
    if (blockIdx.x == 0 && threadIdx.x == 0) *next = 0;  /*@reset*/
#endif
    for (;;) {
        if (threadIdx.x == 0) tile = atomicAdd(next, 1);  /*@ticket*/
        __syncthreads();
        unsigned mine = tile;
        __syncthreads();
        if (mine >= 8) break;
        if (threadIdx.x == 0) out[mine] = mine;  /*@taken*/
    }
}
