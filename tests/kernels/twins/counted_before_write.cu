// A barrier by hand: each thread counts with a release, and waits until all have. What it writes behind its count is not covered.
// launch: grid=1 block=64
// arg: x f32[64]=random
// arg: out f32[64]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
__device__ void count(unsigned* counter) {
    unsigned old;
    asm volatile("atom.add.release.cta.shared.u32 %0, [%1], 1;" : "=r"(old) : "r"((unsigned)__cvta_generic_to_shared(counter)) : "memory");
}
__device__ unsigned counted(unsigned* counter) {
    unsigned value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(value) : "r"((unsigned)__cvta_generic_to_shared(counter)) : "memory");
    return value;
}
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[64];
    __shared__ unsigned counter;
    int t = threadIdx.x;
    float own = x[t];
    if (t == 0) counter = 0;
    __syncthreads();
#ifdef RACY
    count(&counter);
#endif
    s[t] = own;  /*@write*/
#ifndef RACY
    count(&counter);
#endif
    while (counted(&counter) != 64) {}
    out[t] = s[63 - t];  /*@read*/
}
