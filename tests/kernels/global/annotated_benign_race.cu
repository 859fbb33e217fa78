// A hint that any CTA may set, and that may be lost: the race is meant, and annotations leave it out. What stands behind them is compared.
//
// launch: grid=4 block=32
// arg:    hint u32[1]=zeros
// arg:    sum u32[1]=zeros
// expect: global-race @hint severity=error
// result: sum = np.uint32([4])
#include <consan.h>
extern "C" __global__ void kernel(unsigned* hint, unsigned* sum) {
    if (threadIdx.x) return;
#ifndef RACY
    consan_ignore_begin();
#endif
    hint[0] = blockIdx.x;  /*@hint*/
#ifndef RACY
    consan_ignore_end();
#endif
    atomicAdd(sum, 1);
}
