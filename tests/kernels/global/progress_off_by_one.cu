// R-GM3: a wavefront. Each CTA counts its tiles; the next one waits for one tile too few.
//
// launch: grid=3 block=32
// arg:    rows u32[384]=zeros
// arg:    done u32[3]=zeros
// expect: global-race @store @load severity=error
// result: rows = np.repeat(np.arange(1, 4, dtype=np.uint32), 128)
extern "C" __global__ void kernel(unsigned* rows, unsigned* done) {
    unsigned thread = threadIdx.x, row = blockIdx.x;
#ifdef RACY
    const unsigned early = 1;
#else
    const unsigned early = 0;
#endif
#pragma unroll 1
    for (unsigned tile = 0; tile < 4; tile++) {
        unsigned above = 0, seen;
        if (row) {
            if (thread == 0) do
                    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(done + row - 1) : "memory");
                while (seen + early < tile + 1);
            __syncthreads();
            above = rows[(row - 1) * 128 + tile * 32 + thread];  /*@load*/
        }
        rows[row * 128 + tile * 32 + thread] = above + 1;  /*@store*/
        __syncthreads();
        if (thread == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(done + row), "r"(tile + 1) : "memory");
    }
}
