// The same with fences around relaxed accesses; the racy twin has lost the reader's fence.
// launch: grid=1 block=64
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
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
        if (lane == 0) {
            __threadfence_block();
            asm volatile("st.relaxed.cta.shared.u32 [%0], 1;" :: "r"(address) : "memory");
        }
    } else {
        unsigned seen = lane != 0;
        while (!seen) asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(address) : "memory");
#ifndef RACY
        __threadfence_block();
#endif
        __syncwarp();
        out[lane] = data[31 - lane];  /*@read*/
    }
}
