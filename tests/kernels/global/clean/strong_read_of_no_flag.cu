// R-MO1 says nothing of a strong store that leaves the value that is there: here both are 0, so timing decides nothing.
//
// launch: grid=2 block=1
// arg:    data u32[1]=zeros
// arg:    out u32[1]=zeros
// result: out = np.uint32([1])
extern "C" __global__ void kernel(volatile unsigned* data, unsigned* out) {
    if (blockIdx.x == 0) *data = 0;
    else *out = *data + 1;
}
