// Tiles of 8 rows whose last row is the next tile's first one: a loop with <= in place of <.
//
// launch: grid=4 block=32
// arg:    out f32[1056]=zeros
// expect: global-race WAW @store severity=error
// result: out = np.repeat([0, 1, 2, 3, 0], [256, 256, 256, 256, 32]).astype(np.float32)
#ifdef RACY
#define BEFORE <=
#else
#define BEFORE <
#endif
extern "C" __global__ void kernel(float* out) {
    int first = blockIdx.x * 8;
    for (int row = first; row BEFORE first + 8; row++) out[row * 32 + threadIdx.x] = blockIdx.x;  /*@store*/
}
