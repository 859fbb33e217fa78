// Every warp raises the same flag with one instruction: a race by the ISA, harmless in practice, so a note.
// launch: grid=1 block=128
// arg: x i32[128]=arange
// arg: out i32[128]=zeros
// expect: data-race WAW @write @write severity=note
// result: out = np.ones(128, np.int32)
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int flag;
    int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
#ifdef RACY
    if (x[t] >= 0 && t % 32 == 0) {
        flag = 1;  /*@write*/
    }
#else
    if (t == 0 && x[t] >= 0) flag = 1;
#endif
    __syncthreads();
    out[t] = flag;
}
