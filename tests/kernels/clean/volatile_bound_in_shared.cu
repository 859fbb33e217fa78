// R-MO1 says nothing of strong loads whose value decides something: bounds in shared memory that may be stale.
// launch: grid=1 block=64
// arg: x u32[64]=arange
// arg: out u32[64]=zeros
// result: x = np.arange(64)
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ volatile unsigned bounds[2];
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x == 0) bounds[0] = bounds[1] = 100;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        if (x[1] > bounds[warp ^ 1]) out[warp] = 1;
        bounds[warp] = x[threadIdx.x] + 32;
    }
}
