// Atomics of different widths on one address are not morally strong (ISA 8.7: complete overlap), and keep their atomicity (8.7.2): a warning.
// launch: grid=1 block=64
// arg: out u64[1]=zeros
// expect: data-race @wide @narrow severity=warning
// result: out = np.array([64], np.uint64)
extern "C" __global__ void kernel(unsigned long long* out) {
    __shared__ unsigned long long total;
    int t = threadIdx.x;
    if (t == 0) total = 0;
    __syncthreads();
    if (t < 32) {
        atomicAdd(&total, 1ull);  /*@wide*/
    } else {
#ifdef RACY
        atomicAdd((unsigned*)&total, 1u);  /*@narrow*/
#else
        atomicAdd(&total, 1ull);
#endif
    }
    __syncthreads();
    if (t == 0) out[0] = total;
}
