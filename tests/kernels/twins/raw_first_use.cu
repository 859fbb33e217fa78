// The same exchange on memory that nobody has written before: a load that comes first reads uninitialised bytes, one
// that comes second races; the report may name either kind but must show both lines or the read alone.
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race|uninitialized-read @read severity=error
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[128];
    int t = threadIdx.x;
    tile[t] = x[t];
#ifndef RACY
    __syncthreads();
#endif
    out[t] = tile[127 - t];  /*@read*/
}
