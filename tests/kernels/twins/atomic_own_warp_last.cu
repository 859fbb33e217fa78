// Two warps add to a counter; the one that reads it adds last, so that of the last atomics only those of its own lanes are unordered. The other
// warp's, before them, make it an error.
//
// launch: grid=1 block=64
// arg: out u32[1]=zeros
// expect: data-race @add @read severity=error
// result: out = np.array([64], np.uint32)
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned count, spun;
    const int t = threadIdx.x;
    if (t == 0) count = spun = 0;
    __syncthreads();
    for (int i = 0; i < 16 && t < 32; i++) atomicOr(&spun, 1u);
    atomicAdd(&count, 1u);                        /*@add*/
#ifndef RACY
    __syncthreads();
#endif
    if (t == 0) out[0] = count;                   /*@read*/
}
