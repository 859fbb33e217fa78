// A ballot makes the lanes of a warp meet but orders none of their memory accesses; __syncwarp does both.
// launch: grid=1 block=32
// arg: x i32[32]=arange
// arg: out i32[32]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = 0;
    __syncwarp();
    s[t] = x[t];  /*@write*/
#ifdef RACY
    if (__ballot_sync(0xffffffffu, x[t] >= 0) == 0) return;
#else
    __syncwarp();
#endif
    out[t] = s[31 - t];  /*@read*/
}
