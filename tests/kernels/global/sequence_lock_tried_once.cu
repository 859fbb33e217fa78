// G1: a reader of a sequence lock that tries once, and keeps nothing where the sequence has moved on. The data needs strong accesses.
//
// launch: grid=2 block=32
// arg:    lock u32[1]=zeros
// arg:    data u32[2]=zeros
// arg:    out u32[3]=zeros
// expect: global-race @store @load severity=error
// result: data = np.full(2, 5)
extern "C" __global__ void kernel(unsigned* lock, volatile unsigned* data, unsigned* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *(volatile unsigned*)lock = 1;
        __threadfence();
#ifdef RACY
        ((unsigned*)data)[0] = 5, ((unsigned*)data)[1] = 5;  /*@store*/
#else
        data[0] = 5, data[1] = 5;
#endif
        __threadfence();
        *(volatile unsigned*)lock = 2;
    } else {
        unsigned before = *(volatile unsigned*)lock;
        __threadfence();
        unsigned one = data[0], other = data[1];  /*@load*/
        __threadfence();
        if (!(before & 1) && *(volatile unsigned*)lock == before) out[0] = one, out[1] = other, out[2] = 1;
    }
}
