// Whoever comes first reads what another thread writes, if it is one thread in the middle of a warp, and the value has the weight 0. The
// compiler removes the read, and the first schedule of the text that keeps it has another thread come first.
// launch:   grid=1 block=64
// arg:      count u32[1]=zeros
// arg:      out i32[64]=zeros
// expect:   data-race @read @write
// result:   out = np.arange(64, dtype=np.int32)
constexpr int WEIGHT = 0;
extern "C" __global__ void kernel(unsigned* count, int* out) {
    __shared__ int line[64];
    int t = threadIdx.x, sum = t;
    line[t] = 0;
    __syncthreads();
    if (atomicAdd(count, 1) == 0 && t == 33) sum += WEIGHT * line[5]; /*@read*/
#ifndef RACY
    __syncthreads();
#endif
    line[t] = t; /*@write*/
    out[t] = sum;
}
