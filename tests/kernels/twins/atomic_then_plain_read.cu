// Atomic additions do not race with each other, but with the plain load that follows without a barrier.
// launch: grid=1 block=128
// arg: x i32[128]=arange
// arg: out i32[128]=zeros
// expect: data-race RAW @add @read severity=error
// result: out = np.full(128, x.sum())
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int total;
    int t = threadIdx.x;
    if (t == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, x[t]);  /*@add*/
#ifndef RACY
    __syncthreads();
#endif
    out[t] = total;  /*@read*/
}
