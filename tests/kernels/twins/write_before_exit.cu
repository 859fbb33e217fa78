// Some lanes of the last warp write their element and return before the barrier, which the others of their warp pass: it orders nothing of
// a thread that has exited. Threads of the first warp read these elements.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = np.where(np.arange(64) < 40, np.arange(64)[::-1], 0)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t]; /*@write*/
#ifdef RACY
    if (t >= 40) return;
#endif
    __syncthreads();
    if (t < 40) out[t] = tile[63 - t]; /*@read*/
}
