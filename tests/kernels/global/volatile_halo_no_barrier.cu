// R-MO1, timing alone, between CTAs: each CTA replaces its value by the sum with its neighbour's, through volatile words and without a barrier
// of the grid between the reads and the writes.
//
// launch: grid=2 block=1
// arg:    value u32[2]=arange
// arg:    next u32[2]=zeros
// expect: missing-order RAW @load @store severity=warning
// result: next = np.uint32([1, 1])
extern "C" __global__ void kernel(volatile unsigned* value, volatile unsigned* next) {
    unsigned sum = value[blockIdx.x] + value[1 - blockIdx.x];  /*@load*/
#ifdef RACY
    value[blockIdx.x] = sum;  /*@store*/
#else
    next[blockIdx.x] = sum;
#endif
}
