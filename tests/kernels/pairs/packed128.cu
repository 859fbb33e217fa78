// Single-pass prefix sum, descriptors of 128 bits: a 64-bit sum and a 64-bit status, look-back by thread 0 of each CTA.
// launch: grid=8 block=64 arch=sm_90
// arg: x u64[8,64]=arange
// arg: desc u64[8,2]=zeros
// arg: out u64[8,64]=zeros
// result: out = np.cumsum(x.reshape(-1)).reshape(8, 64)
// bug 1: global-race descriptor stored by a plain vector store
// bug 2: clean descriptor as a vector of two strong words: it may tear, but it is no race
// bug 3: global-race status is polled alone, as a word of 64 bits, then the value
// bug 4: global-race value stored plainly, then the status relaxed, two words
// bug 5: clean value stored plainly, then the status with release, two words and an acquire
typedef unsigned long long u64;
__device__ void put(u64* d, u64 sum, u64 status) {
#if BUG == 1
    *(ulonglong2*)d = make_ulonglong2(sum, status);
#elif BUG == 2
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(d), "l"(sum), "l"(status) : "memory");
#elif BUG == 4
    d[0] = sum;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(d + 1), "l"(status) : "memory");
#elif BUG == 5
    d[0] = sum;
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(d + 1), "l"(status) : "memory");
#else
    asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.gpu.global.b128 [%0], v; }" ::"l"(d), "l"(sum), "l"(status) : "memory");
#endif
}
__device__ void get(u64* d, u64& sum, u64& status) {
#if BUG == 2 || BUG == 1
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(sum), "=l"(status) : "l"(d) : "memory");
#elif BUG == 3 || BUG == 4
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(status) : "l"(d + 1) : "memory");
    if (status) sum = d[0];
#elif BUG == 5
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(status) : "l"(d + 1) : "memory");
    if (status) sum = d[0];
#else
    asm volatile("{ .reg .b128 v; ld.relaxed.gpu.global.b128 v, [%2]; mov.b128 {%0, %1}, v; }" : "=l"(sum), "=l"(status) : "l"(d) : "memory");
#endif
}
extern "C" __global__ void kernel(const u64* __restrict__ x, u64* desc, u64* out) {
    __shared__ u64 part[64];
    __shared__ u64 before;
    int t = threadIdx.x, b = blockIdx.x;
    part[t] = x[b * 64 + t];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        u64 v = t >= d ? part[t - d] : 0;
        __syncthreads();
        part[t] += v;
        __syncthreads();
    }
    if (t == 0) {
        u64 sum = 0, status = 0;
        if (b) do get(desc + 2 * (b - 1), sum, status); while (status == 0);
        before = sum;
        put(desc + 2 * b, sum + part[63], 1);
    }
    __syncthreads();
    out[b * 64 + t] = before + part[t];
}
