// R-GM10: a release store of a vector is one of each of its elements, so a thread that polls one element is behind it. RACY: the store is relaxed.
//
// launch: grid=2 block=32
// arg:    data f32[32]=zeros
// arg:    flag u32[4]=zeros
// arg:    out f32[32]=zeros
// expect: global-race @store @load severity=error
// result: out = np.full(32, 7, np.float32)
#ifdef RACY
#define ORDER "relaxed"
#else
#define ORDER "release"
#endif
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 7; /*@store*/
        __syncthreads();
        if (threadIdx.x == 0) asm volatile("st." ORDER ".gpu.global.v4.b32 [%0], {%1, %1, %1, %1};" ::"l"(flag), "r"(1) : "memory");
    } else {
        unsigned seen = 0;
        while (threadIdx.x == 0 && !seen) asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(seen) : "l"(flag + 3) : "memory");
        __syncthreads();
        out[threadIdx.x] = data[31 - threadIdx.x]; /*@load*/
    }
}
