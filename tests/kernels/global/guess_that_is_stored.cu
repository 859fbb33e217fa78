// R-RACE: what a plain read guesses for a compare-and-swap is stored, too: there it may be wrong.
// launch: grid=2 block=32
// arg: sum u32[1]=zeros
// arg: before u32[64]=zeros
// expect: global-race RAW @swap @guess severity=error
// expect: data-race WAR @guess @swap severity=error
// result: sum = np.uint32([64])
extern "C" __global__ void kernel(unsigned* sum, unsigned* before) {
#ifdef RACY
    unsigned found = *sum;  /*@guess*/
#else
    unsigned found = *(volatile unsigned*)sum;
#endif
    before[blockIdx.x * blockDim.x + threadIdx.x] = found;
    unsigned guess;
    do {
        guess = found;
        found = atomicCAS(sum, guess, guess + 1);  /*@swap*/
    } while (found != guess);
}
