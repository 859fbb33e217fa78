// R-MO1 says nothing of a strong read before which no flag was read: it may come at any time. Here both values are equal.
//
// launch: grid=2 block=1
// arg:    data u32[1]=zeros
// arg:    out u32[1]=zeros
// result: out = np.uint32([1])
extern "C" __global__ void kernel(volatile unsigned* data, unsigned* out) {
    if (blockIdx.x == 0) *data = 0;
    else *out = *data + 1;
}
