// A ticket lock around two sums, of loads and stores each. The thread that takes its turn does not acquire: one fence behind the look is all that
// lacks, for both sums.
// launch: grid=6 block=32
// arg:    lock u32[2]=zeros
// arg:    sums u32[2]=zeros
// backends: cpu
// expect: global-race @first @first severity=error
// expect: global-race @second @second severity=error
// result: sums = np.array([15, 6])
extern "C" __global__ void kernel(unsigned* lock, unsigned* sums) {
    if (threadIdx.x) return;
    unsigned mine = atomicAdd(lock, 1u);
    while (atomicAdd(lock + 1, 0u) != mine) __nanosleep(20);
#ifndef RACY
    __threadfence();
#endif
    sums[0] += mine;  /*@first*/
    sums[1] += 1;     /*@second*/
    __threadfence();
    atomicAdd(lock + 1, 1u);
}
