// G9: lane 0 acquires the flag; the other lanes need a barrier of the warp after it.
//
// launch: grid=2 block=32
// arg:    data f32[32]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[32]=zeros
// expect: global-race RAW @store @load severity=error
// result: out = np.arange(32, dtype=np.float32)
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;  /*@store*/
        __syncthreads();
        if (threadIdx.x == 0) asm volatile("st.release.gpu.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        unsigned seen = 0;
        if (threadIdx.x == 0)
            while (!seen) asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
#ifdef RACY
        seen = __shfl_sync(0xffffffff, seen, 0);
#else
        __syncwarp();
#endif
        out[threadIdx.x] = data[threadIdx.x];  /*@load*/
    }
}
