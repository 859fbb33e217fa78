// Two warps store to the same words; only a barrier says whose value stays.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race WAW @first @second severity=error
// result: out = np.tile(-x[32:], 2)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[32];
    int t = threadIdx.x;
    if (t < 32) {
        tile[t] = x[t];  /*@first*/
    }
#ifndef RACY
    __syncthreads();
#endif
    if (t >= 32) {
        tile[t - 32] = -x[t];  /*@second*/
    }
    __syncthreads();
    out[t] = tile[t % 32];
}
