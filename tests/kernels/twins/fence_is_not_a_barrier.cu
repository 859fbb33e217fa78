// A memory fence orders one thread's own accesses; it makes nobody wait.
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[128];
    int t = threadIdx.x;
    tile[t] = 0.0f;
    __syncthreads();
    tile[t] = x[t];  /*@write*/
#ifdef RACY
    __threadfence_block();
#else
    __syncthreads();
#endif
    out[t] = tile[127 - t];  /*@read*/
}
