// Counting with plain loads and stores. Two stores to one bin may carry the same count or not: updates are lost either way.
// launch: grid=1 block=128
// arg: x i32[128]=random
// arg: out i32[8]=zeros
// expect: data-race RAW @read @write severity=error
// expect: data-race WAW @write @write severity=error
// result: out = np.bincount(x, minlength=8)
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int bins[8];
    int t = threadIdx.x, bin = x[t];
    if (t < 8) bins[t] = 0;
    __syncthreads();
#ifdef RACY
    int count = bins[bin];  /*@read*/
    bins[bin] = count + 1;  /*@write*/
#else
    atomicAdd(&bins[bin], 1);
#endif
    __syncthreads();
    if (t < 8) out[t] = bins[t];
}
