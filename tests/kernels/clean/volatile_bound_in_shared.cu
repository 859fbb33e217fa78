// R-MO1 says nothing of strong loads whose value decides something: a bound in shared memory that may be stale.
// launch: grid=1 block=64
// arg: x u32[64]=arange
// arg: out u32[64]=zeros
// result: x = np.arange(64)
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ volatile unsigned bound;
    if (threadIdx.x == 0) bound = 100;
    __syncthreads();
    if (threadIdx.x == 32) bound = x[threadIdx.x];
    if (threadIdx.x == 0 && x[1] > bound) out[0] = 1;
}
