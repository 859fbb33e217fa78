// G2: split-K. The first CTA of a tile stores its part and sets a flag; the second waits for the flag and adds its own part.
//
// launch: grid=2 block=32
// arg:    tile f32[32]=zeros
// arg:    flag u32[1]=zeros
// expect: global-race @store @add severity=error
// allow:  global-race @store @put severity=error
// result: tile = np.full(32, 3, np.float32)
extern "C" __global__ void kernel(float* tile, unsigned* flag) {
    if (blockIdx.x == 0) {
        tile[threadIdx.x] = 1;  /*@store*/
        __syncthreads();
#ifdef RACY
        if (threadIdx.x == 0) asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
#else
        if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
#endif
    } else {
        unsigned seen = 0;
        if (threadIdx.x == 0)
            while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        __syncthreads();
        float sum = tile[threadIdx.x] + 2;  /*@add*/
        tile[threadIdx.x] = sum;            /*@put*/
    }
}
