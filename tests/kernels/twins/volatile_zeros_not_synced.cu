// A scan of a warp on volatile memory. Half of it holds zeros. Without __syncwarp() a lane may read a zero that another lane has yet to
// store. That is no uninitialised read, because the store is there, but one in no order (R-MO1).
// launch: grid=1 block=32
// arg: x u32[32]=arange
// arg: out u32[32]=zeros
// expect: missing-order RAW @zero @scan severity=warning
// allow: missing-order RAW @first @scan severity=warning
// allow: missing-order RAW @scan @scan severity=warning
// result: out = np.cumsum(x)
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ volatile unsigned s[64];
    int t = threadIdx.x;
    s[t] = 0;  /*@zero*/
    s[t + 32] = x[t];  /*@first*/
#ifdef RACY
    for (int d = 1; d < 32; d <<= 1) s[t + 32] = s[t + 32] + s[t + 32 - d];  /*@scan*/
#else
    __syncwarp();
    for (int d = 1; d < 32; d <<= 1) {
        unsigned sum = s[t + 32] + s[t + 32 - d];
        __syncwarp();
        s[t + 32] = sum;
        __syncwarp();
    }
#endif
    out[t] = s[t + 32];
}
