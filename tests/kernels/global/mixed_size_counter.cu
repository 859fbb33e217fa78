// G1: a counter of 64 bits; some CTAs add to its lower half. Each atomic is performed as a whole (ISA 8.7.2): a warning.
//
// launch: grid=4 block=32
// arg:    total u64[1]=zeros
// expect: global-race @wide @narrow severity=warning
// result: total = np.array([4], np.uint64)
extern "C" __global__ void kernel(unsigned long long* total) {
    if (threadIdx.x) return;
#ifdef RACY
    if (blockIdx.x % 2) {
        atomicAdd((unsigned*)total, 1u);  /*@narrow*/
        return;
    }
#endif
    atomicAdd(total, 1ull);  /*@wide*/
}
