// Message passing through a flag in shared memory: release and acquire make the edge, relaxed accesses do not. Only the
// first lanes touch the flag, so __syncwarp carries the edge to the others.
// launch: grid=1 block=64
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
#ifdef RACY
#define STORE "st.relaxed.cta.shared.u32"
#define LOAD "ld.relaxed.cta.shared.u32"
#else
#define STORE "st.release.cta.shared.u32"
#define LOAD "ld.acquire.cta.shared.u32"
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float data[32];
    __shared__ unsigned flag;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned address = (unsigned)__cvta_generic_to_shared(&flag);
    if (warp == 0) data[lane] = 0.0f;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (warp == 0) {
        data[lane] = x[lane];  /*@write*/
        __syncwarp();
        if (lane == 0) asm volatile(STORE " [%0], 1;" :: "r"(address) : "memory");
    } else {
        unsigned seen = lane != 0;
        while (!seen) asm volatile(LOAD " %0, [%1];" : "=r"(seen) : "r"(address) : "memory");
        __syncwarp();
        out[lane] = data[31 - lane];  /*@read*/
    }
}
