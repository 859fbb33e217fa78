// G1, R-MO1: rounds of a sequence lock begin and end between the reader's first look and its loads. One of these finds what a round has stored before
// it stores the rest; that value is thrown away with the others, and is no flag.
//
// launch: grid=2 block=32
// arg:    lock u32[1]=zeros
// arg:    data u32[2]=zeros
// arg:    out u32[2]=zeros
// arg:    idle u32[1]=zeros
// result: data = np.full(2, 9)
extern "C" __global__ void kernel(unsigned* lock, volatile unsigned* data, unsigned* out, volatile unsigned* idle) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        for (unsigned round = 1; round < 10; round++) {
            atomicAdd(lock, 1);
            __threadfence();
            data[0] = round;
            for (int look = 0; look < 20; look++) (void)*idle;
            data[1] = round;
            __threadfence();
            atomicAdd(lock, 1);
        }
    } else {
        unsigned before, one, other;
        do {
            before = atomicAdd(lock, 0);
            __threadfence();
            for (int look = 0; look < 30; look++) (void)*idle;
            one = data[0], other = data[1];
            __threadfence();
        } while ((before & 1) || atomicAdd(lock, 0) != before);
        out[0] = one, out[1] = other;
    }
}
