// Both threads of a pair write both elements back, also what has not changed. The compiler removes such a store.
// launch:   grid=1 block=64
// arg:      out f32[64]=zeros
// expect:   data-race @back @store
// allow:    data-race
// result:   out = np.arange(64, dtype=np.float32) + 1
extern "C" __global__ void kernel(float* out) {
    __shared__ float line[64];
    int t = threadIdx.x;
    line[t] = t;
    __syncthreads();
#ifdef RACY
    float other = line[t ^ 32];
    line[t ^ 32] = other; /*@back*/
#endif
    line[t] = t + 1.0f; /*@store*/
    out[t] = line[t];
}
