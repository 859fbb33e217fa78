// One CTA takes a lock and changes a value. The other one tries the lock, and if it is taken it reads without it. It does so only where it
// tries between the two steps of the first: neither the first nor the last of those who come to the lock does.
// launch:   grid=2 block=32 arch=sm_80
// arg:      value u32[2]=zeros
// arg:      lock u32[1]=zeros
// expect:   global-race severity=error
// backends: cpu
extern "C" __global__ void kernel(unsigned *value, unsigned *lock) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        value[0] = 1;
        __threadfence();
        atomicExch(lock, 0);
        return;
    }
    unsigned seen = 0;
    if (atomicCAS(lock, 0, 1) == 0) {
        __threadfence();
        seen = value[0];
        __threadfence();
        atomicExch(lock, 0);
#ifdef RACY
    } else {
        seen = value[0];
#endif
    }
    value[1] = seen;
}
