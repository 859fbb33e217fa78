// The barrier belongs before the load with the weight 0. The compiler removes that load, and then a barrier behind it would do.
// launch:   grid=1 block=64
// arg:      out i32[64]=zeros
// expect:   data-race RAW @store @use
// result:   out = (np.arange(64, dtype=np.int32) + 33) % 64
constexpr int WEIGHT = 0;
extern "C" __global__ void kernel(int* out) {
    __shared__ int line[64];
    int t = threadIdx.x;
    line[t] = t; /*@store*/
#ifndef RACY
    __syncthreads();
#endif
    int far = WEIGHT * line[(t + 32) % 64]; /*@dead*/
    out[t] = line[(t + 33) % 64] + far; /*@use*/
}
