// R-MO1 says nothing where causality orders the write by itself (R-GM8): the word is its own flag, which the thread has polled until it was
// there, or reads twice.
//
// launch: grid=2 block=1
// arg:    data u32[1]=zeros
// arg:    out u32[1]=zeros
// result: out = np.uint32([43])
extern "C" __global__ void kernel(volatile unsigned* data, unsigned* out) {
    if (blockIdx.x == 0) {
        *data = 42;
    } else {
        while (!*data) {}
        *out = *data + 1;
    }
}
