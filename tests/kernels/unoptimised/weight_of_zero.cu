// The weight of a neighbour is a constant 0. The compiler removes its load, which comes beside the neighbour's store.
// launch:   grid=1 block=64
// arg:      out i32[64]=zeros
// expect:   data-race WAR @load @store
// result:   out = np.arange(64, dtype=np.int32) + 1
constexpr int WEIGHT = 0;
extern "C" __global__ void kernel(int* out) {
    __shared__ int line[64];
    int t = threadIdx.x;
    line[t] = t;
    __syncthreads();
    int sum = line[t] + WEIGHT * line[(t + 32) % 64]; /*@load*/
#ifndef RACY
    __syncthreads();
#endif
    line[t] = sum + 1; /*@store*/
    __syncthreads();
    out[t] = line[t];
}
