// In place, each CTA also loads the first element of the next one, and masks it away by a constant. The compiler removes the load, which
// races with the other CTA's store.
// launch:   grid=2 block=64
// arg:      x i32[129]=arange
// expect:   global-race @load @store
// result:   x = np.r_[np.arange(128, dtype=np.int32) + 1, 128]
constexpr int MASK = 0;
extern "C" __global__ void kernel(int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int own = x[i];
#ifdef RACY
    int halo = x[i + 1]; /*@load*/
    __syncthreads();
    x[i] = own + 1 + (halo & MASK); /*@store*/
#else
    x[i] = own + 1;
#endif
}
