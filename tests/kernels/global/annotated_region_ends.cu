// The race stands behind the end of a region: a region leaves out nothing but what is between its annotations.
//
// launch: grid=4 block=32
// arg:    hint u32[1]=zeros
// arg:    sum u32[1]=zeros
// expect: global-race @hint severity=error
// result: sum = np.uint32([4])
#include <consan.h>
extern "C" __global__ void kernel(unsigned* hint, unsigned* sum) {
    if (threadIdx.x) return;
    consan_ignore_begin();
#ifndef RACY
    hint[0] = blockIdx.x;
#endif
    consan_ignore_end();
#ifdef RACY
    hint[0] = blockIdx.x;  /*@hint*/
#endif
    atomicAdd(sum, 1);
}
