// R-MO1 says nothing of strong stores that leave the value that is there: timing decides nothing. Each thread stores the same number.
// launch: grid=1 block=64
// arg: x u32[1]=arange
// arg: out u32[64]=zeros
// result: out = np.zeros(64)
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ volatile unsigned s;
    if (threadIdx.x == 0) s = *x;
    __syncthreads();
    s = *x;
    out[threadIdx.x] = s;
}
