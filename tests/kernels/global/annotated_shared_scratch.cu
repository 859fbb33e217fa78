// Warps store into shared memory in a region: no race there, and what it has written counts as initialised.
//
// launch: grid=1 block=64
// arg:    out u32[64]=zeros
// expect: data-race @store severity=error
// result: out = np.ones(64, np.uint32)
// backends: cpu
#include <consan.h>
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned last[1];
#ifndef RACY
    consan_ignore_begin();
#endif
    last[0] = threadIdx.x;  /*@store*/
#ifndef RACY
    consan_ignore_end();
#endif
    __syncthreads();
    out[threadIdx.x] = last[0] < 64;
}
