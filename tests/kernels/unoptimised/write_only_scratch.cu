// A place in shared memory that all threads write and none reads. The compiler removes the variable, and with it the race.
// launch:   grid=1 block=64
// arg:      out f32[64]=zeros
// expect:   data-race WAW @write @write
// result:   out = np.arange(64, dtype=np.float32)
extern "C" __global__ void kernel(float* out) {
    __shared__ int last[64];
    int t = threadIdx.x;
#ifdef RACY
    last[0] = t; /*@write*/
#else
    last[t] = t;
#endif
    out[t] = t;
}
