// R-RACE: an atomic of a packed type is two atomics of its halves, and a volatile vector as many volatile accesses, so both are morally strong
// with accesses of one element.
// launch: grid=1 block=64
// arg: out f16[2]=zeros
// arg: words u32[4]=zeros
// result: out = np.float16([1, 3])
// result: words = np.uint32([5, 5, 5, 5])
#include <cuda_fp16.h>
extern "C" __global__ void kernel(__half* out, unsigned* words) {
    __shared__ __half2 sums;
    __shared__ __align__(16) unsigned row[4];
    int t = threadIdx.x;
    unsigned seen = 0, at = (unsigned)__cvta_generic_to_shared(row);
    if (t == 0) sums = __floats2half2_rn(0, 0);
    if (t < 4) row[t] = 0;
    __syncthreads();
    if (t == 0) {
        atomicAdd(&sums, __floats2half2_rn(1, 2));
        asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(5) : "memory");
    }
    if (t == 32) {
        atomicAdd(reinterpret_cast<__half*>(&sums) + 1, __float2half(1));
        while (seen != 5) asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(seen) : "r"(at + 8) : "memory");
    }
    __syncthreads();
    if (t < 2) out[t] = reinterpret_cast<__half*>(&sums)[t];
    if (t < 4) words[t] = row[t];
}
