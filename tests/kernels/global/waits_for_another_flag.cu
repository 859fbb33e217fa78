// A chain of CTAs: each adds what the one before it has left, and waits for its flag. One waits for the flag of the CTA before that, at which
// the one before it has looked, too: with an atomic that adds nothing, and sets no flag.
// launch: grid=3 block=32
// arg:    rows u32[96]=arange
// arg:    ready u32[3]=zeros
// backends: cpu
// expect: global-race @add @add severity=error
// result: rows = np.cumsum(np.arange(96).reshape(3, 32), axis=0).astype(np.uint32).ravel()
extern "C" __global__ void kernel(unsigned* rows, unsigned* ready) {
    unsigned row = blockIdx.x, thread = threadIdx.x;
    if (row && thread == 0) {
#ifdef RACY
        unsigned before = row > 1 ? row - 2 : 0;
#else
        unsigned before = row - 1;
#endif
        while (atomicAdd(ready + before, 0u) == 0) {}
        __threadfence();
    }
    __syncthreads();
    if (row) rows[32 * row + thread] += rows[32 * (row - 1) + thread];  /*@add*/
    __syncthreads();
    if (thread == 0) __threadfence(), atomicExch(ready + row, 1u);
}
