// R-RACE: a plain read gives the first guess of a compare-and-swap, which repeats where it is wrong (the guide's atomicAdd for doubles).
// launch: grid=2 block=32
// arg: sum f64[1]=zeros
// arg: before f64[64]=zeros
// expect: global-race RAW @swap @guess severity=warning
// expect: data-race WAR @guess @swap severity=warning
// result: sum = np.float64([64])
typedef unsigned long long u64;
extern "C" __global__ void kernel(double* sum, double* before) {
    u64* address = (u64*)sum;
#ifdef RACY
    u64 found = *address;  /*@guess*/
#else
    u64 found = *(volatile u64*)address;
#endif
    u64 guess;
    do {
        guess = found;
        found = atomicCAS(address, guess, __double_as_longlong(1 + __longlong_as_double(guess)));  /*@swap*/
    } while (found != guess);
    before[blockIdx.x * blockDim.x + threadIdx.x] = __longlong_as_double(found);
}
