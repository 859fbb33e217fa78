// Whoever takes the first ticket writes, if it is one thread in the middle of a warp; another thread writes the same element without one.
// launch:   grid=1 block=64 arch=sm_80
// arg:      count u32[1]=zeros
// arg:      y u32[2]=zeros
// expect:   data-race severity=error
// result:   y = np.array([7, 0])
// backends: cpu
extern "C" __global__ void kernel(unsigned *count, unsigned *y) {
    unsigned t = threadIdx.x, ticket = atomicAdd(count, 1);
#ifdef RACY
    if (ticket == 0 && t == 33) y[0] = t;
#else
    if (ticket == 0 && t == 33) y[1] = t;
#endif
    if (t == 5) y[0] = 7;
}
