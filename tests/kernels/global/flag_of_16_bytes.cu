// G10: a release store and an acquire load of 16 bytes order what any others do (ISA "st", "ld"). RACY: the store is relaxed.
//
// launch: grid=2 block=32 arch=sm_90a
// arg:    data f32[32]=zeros
// arg:    flag u64[2]=zeros
// arg:    out f32[32]=zeros
// expect: global-race @store @load severity=error
// result: out = np.full(32, 7, np.float32)
#ifdef RACY
#define ORDER "relaxed"
#else
#define ORDER "release"
#endif
extern "C" __global__ void kernel(float* data, unsigned long long* flag, float* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 7; /*@store*/
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("{ .reg .b128 q; mov.b128 q, {%1, %2}; st." ORDER ".gpu.global.b128 [%0], q; }" ::"l"(flag), "l"(1ull), "l"(2ull) : "memory");
    } else {
        unsigned long long low = 0, high;
        while (threadIdx.x == 0 && !low)
            asm volatile("{ .reg .b128 q; ld.acquire.gpu.global.b128 q, [%2]; mov.b128 {%0, %1}, q; }" : "=l"(low), "=l"(high) : "l"(flag) : "memory");
        __syncthreads();
        out[threadIdx.x] = data[31 - threadIdx.x]; /*@load*/
    }
}
