// A histogram whose bins are updated in separate steps.
//
// launch: grid=2 block=32
// arg:    bins u32[8]=zeros
// expect: global-race @update severity=error
// expect: data-race @update severity=error
// result: bins = np.full(8, 8, np.uint32)
extern "C" __global__ void kernel(unsigned* bins) {
    unsigned bin = threadIdx.x % 8;
#ifdef RACY
    bins[bin] += 1 + blockIdx.x;  /*@update*/
#else
    atomicAdd(&bins[bin], 1);
#endif
}
