// R-RACE: a plain read gives the first guess of a compare-and-swap, which is left out where it would change nothing (a maximum of floats).
// launch: grid=2 block=32
// arg: most f32[1]=zeros
// expect: global-race RAW @swap @guess severity=warning
// expect: data-race WAR @guess @swap severity=warning
// result: most = np.float32([64])
extern "C" __global__ void kernel(float* most) {
    int* address = (int*)most;
    const float mine = float(blockIdx.x * blockDim.x + threadIdx.x + 1);
#ifdef RACY
    int found = *address;  /*@guess*/
#else
    int found = *(volatile int*)address;
#endif
    int guess;
    do {
        guess = found;
        const int next = __float_as_int(fmaxf(__int_as_float(guess), mine));
        if (next == guess) return;
        found = atomicCAS(address, guess, next);  /*@swap*/
    } while (found != guess);
}
