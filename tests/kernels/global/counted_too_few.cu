// Stream-K: one CTA adds the partial sums of the others. Each counts itself behind its sum, with a release; the last one waits, with an
// acquire, for one too few (R-GM3).
// launch: grid=4 block=32
// arg:    partial f32[96]=zeros
// arg:    counted u32[1]=zeros
// arg:    total f32[32]=zeros
// backends: cpu
// expect: global-race RAW @store @load severity=error
// result: total = np.full(32, 6, np.float32)
extern "C" __global__ void kernel(float* partial, unsigned* counted, float* total) {
    unsigned thread = threadIdx.x, others = gridDim.x - 1;
    if (blockIdx.x < others) {
        partial[32 * blockIdx.x + thread] = 1.0f + blockIdx.x;  /*@store*/
        __syncthreads();
        if (thread == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counted) : "memory");
        return;
    }
#ifdef RACY
    others -= 1;
#endif
    unsigned seen = 0;
    if (thread == 0) do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counted) : "memory");
        while (seen < others);
    __syncthreads();
    float sum = 0;
    for (unsigned each = 0; each < gridDim.x - 1; each++) sum += partial[32 * each + thread];  /*@load*/
    total[thread] = sum;
}
