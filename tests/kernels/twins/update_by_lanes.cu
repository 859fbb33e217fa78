// Lanes of one warp change bits and count with plain loads and stores. In step or not, of the values that they store one remains.
// launch: grid=1 block=32
// arg: x i32[32]=random
// arg: out u32[2]=zeros
// expect: data-race WAW @bits @bits severity=error
// expect: data-race WAW @count @count severity=error
// allow: data-race RAW @bits @bits
// allow: data-race RAW @count @count
// result: out = np.array([np.sum((x > 2) << np.arange(32)), np.sum(x > 2)], np.uint32)
extern "C" __global__ void kernel(const int* x, unsigned* out) {
    __shared__ unsigned bits, count;
    int t = threadIdx.x;
    if (t == 0) bits = 0, count = 0;
    __syncthreads();
    if (x[t] > 2) {
#ifdef RACY
        bits |= 1u << t;  /*@bits*/
        count++;          /*@count*/
#else
        atomicOr(&bits, 1u << t);
        atomicAdd(&count, 1u);
#endif
    }
    __syncthreads();
    if (t == 0) out[0] = bits, out[1] = count;
}
