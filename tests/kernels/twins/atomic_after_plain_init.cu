// One thread clears the counter and nobody waits for it: additions may be lost.
// launch: grid=1 block=96
// arg: x i32[96]=arange
// arg: out i32[96]=zeros
// expect: data-race|uninitialized-read @add severity=error
// result: out = np.full(96, x.sum())
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int total;
    int t = threadIdx.x;
    if (t == 0) total = 0;
#ifndef RACY
    __syncthreads();
#endif
    atomicAdd(&total, x[t]);  /*@add*/
    __syncthreads();
    out[t] = total;
}
