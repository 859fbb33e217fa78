// G1: a writer and a reader with a sequence lock. The reader may read in the middle of a write, so both need strong accesses to the data.
//
// launch: grid=2 block=32
// arg:    lock u32[1]=zeros
// arg:    data u32[2]=zeros
// arg:    out u32[2]=zeros
// expect: global-race @store @load severity=error
// result: data = np.full(2, 5)
extern "C" __global__ void kernel(unsigned* lock, volatile unsigned* data, unsigned* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        atomicAdd(lock, 1);
        __threadfence();
#ifdef RACY
        ((unsigned*)data)[0] = 5, ((unsigned*)data)[1] = 5;  /*@store*/
#else
        data[0] = 5, data[1] = 5;
#endif
        __threadfence();
        atomicAdd(lock, 1);
    } else {
        unsigned before, one, other;
        do {
            before = atomicAdd(lock, 0);
            __threadfence();
            one = data[0], other = data[1];  /*@load*/
            __threadfence();
        } while ((before & 1) || atomicAdd(lock, 0) != before);
        out[0] = one, out[1] = other;
    }
}
