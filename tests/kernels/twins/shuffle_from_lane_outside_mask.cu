// Each half of a warp adds by its own mask. The last lane of the first half takes the value of a lane of the other half, which is alive and not
// in the mask: undefined (9.7.9.6), and another lane stores it behind one more exchange. A width of 16 keeps each half to itself.
// launch: grid=1 block=32
// arg: x i32[32]=arange
// arg: out i32[32]=zeros
// expect: barrier-misuse @shuffle @store severity=error
// result: out = np.where(np.arange(32) < 16, x + np.minimum(np.arange(32) + 1, 15), 2 * x)[np.arange(32) ^ 8]
extern "C" __global__ void kernel(const int* x, int* out) {
    int t = threadIdx.x, v = x[t];
    if (v < 16) {
#ifdef RACY
        v += __shfl_down_sync(0xffff, v, 1);  /*@shuffle*/
#else
        v += __shfl_down_sync(0xffff, v, 1, 16);
#endif
    } else {
        v += v;
    }
    out[t] = __shfl_xor_sync(0xffffffff, v, 8);  /*@store*/
}
