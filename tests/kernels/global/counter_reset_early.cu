// G8: a counter may be reset by who has seen all increments. CTA 0 resets it at its start.
//
// launch: grid=4 block=32
// arg:    count u32[2]=zeros
// expect: global-race @reset @count severity=error
// result: count = np.uint32([0, 1])
extern "C" __global__ void kernel(unsigned* count) {
    if (threadIdx.x) return;
#ifdef RACY
    if (blockIdx.x == 0) count[0] = 0;  /*@reset*/
#endif
    if (atomicAdd(count, 1) == gridDim.x - 1) {  /*@count*/
        count[1] = 1;
#ifndef RACY
        count[0] = 0;
#endif
    }
}
