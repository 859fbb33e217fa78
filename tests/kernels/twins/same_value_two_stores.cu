// Two branches raise the same flag, each with a store of its own: the values agree today, so a warning.
// launch: grid=1 block=128
// arg: x i32[128]=arange
// arg: out i32[128]=zeros
// expect: data-race WAW @first @second severity=warning
// result: out = np.ones(128, np.int32)
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int flag;
    int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 0 && x[t] >= 0) flag = 1;  /*@first*/
#ifndef RACY
    __syncthreads();
#endif
    if (t == 64 && x[t] >= 64) flag = 1;  /*@second*/
    __syncthreads();
    out[t] = flag;
}
