// R-MO1, timing alone: a tree reduction through volatile shared memory without the barrier between its steps. The accesses are strong, hence
// no race, but a warp may read a partial sum before the warp that adds to it has stored it.
//
// launch: grid=1 block=128
// arg:    x i32[128]=arange
// arg:    out i32[1]=zeros
// expect: missing-order RAW @add @add severity=warning
// result: out = x.sum().reshape(1).astype(np.int32)
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ volatile int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int d = 64; d >= 32; d >>= 1) {
        if (t < d) s[t] += s[t + d];  /*@add*/
#ifndef RACY
        __syncthreads();
#endif
    }
    if (t < 32) {
        int sum = s[t];  /*@add*/
        for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
        if (t == 0) out[0] = sum;
    }
}
