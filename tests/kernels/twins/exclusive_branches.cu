// Two warps in the two branches of one condition: the second reads what the first writes, and no place lies between the branches.
//
// launch: grid=1 block=64
// arg:    in i32[64]=arange
// arg:    out i32[64]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = np.tile(np.arange(32), 2).astype(np.int32) * (np.arange(64) >= 32)
extern "C" __global__ void kernel(const int* in, int* out) {
    __shared__ int tile[32];
    int thread = threadIdx.x;
#ifdef RACY
    if (thread < 32) {
        tile[thread] = in[thread];  /*@write*/
    } else {
        out[thread] = tile[thread - 32];  /*@read*/
    }
#else
    if (thread < 32) tile[thread] = in[thread];
    __syncthreads();
    if (thread >= 32) out[thread] = tile[thread - 32];
#endif
}
