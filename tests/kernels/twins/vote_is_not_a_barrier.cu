// __syncthreads_or is a barrier for the CTA; __any_sync has the same shape and is none.
// launch: grid=1 block=128
// arg: x i32[128]=arange
// arg: out i32[128]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int tile[128];
    int t = threadIdx.x;
    tile[t] = 0;
    __syncthreads();
    tile[t] = x[t];  /*@write*/
#ifdef RACY
    int any = __any_sync(0xffffffffu, x[t] >= 0);
#else
    int any = __syncthreads_or(x[t] >= 0);
#endif
    out[t] = any ? tile[127 - t] : -1;  /*@read*/
}
