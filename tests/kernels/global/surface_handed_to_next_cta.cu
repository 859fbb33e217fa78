// R-SU1: one CTA writes a row of a surface and releases a flag, the next one acquires the flag and reads the row. No synchronisation orders
// accesses of two CTAs to a surface: order through a proxy other than the generic one holds within a CTA (ISA 8.9.5). The repaired
// kernel hands the row over in global memory, and each CTA writes rows of its own to the surface.
//
// launch: grid=2 block=32
// arg:    plane u64=7
// arg:    row u32[32]=zeros
// arg:    flag u32[1]=zeros
// arg:    out u32[32]=zeros
// expect: global-race RAW @store @load severity=error
// backends: cpu
// result: out = np.arange(32) + 100
__device__ void set(unsigned* flag) { asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory"); }
__device__ unsigned seen(unsigned* flag) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}
extern "C" __global__ void kernel(unsigned long long plane, unsigned* row, unsigned* flag, unsigned* out) {
    unsigned x = threadIdx.x, found;
    if (blockIdx.x == 0) {
        asm volatile("sust.b.1d.b32.trap [%0, {%1}], %2;" ::"l"(plane), "r"(4 * x), "r"(x + 100) : "memory");  /*@store*/
        row[x] = x + 100;
        __syncthreads();
        if (x == 0) set(flag);
    } else {
        while (x == 0 && !seen(flag)) {}
        __syncthreads();
#ifdef RACY
        asm volatile("suld.b.1d.b32.trap %0, [%1, {%2}];" : "=r"(found) : "l"(plane), "r"(4 * x) : "memory");  /*@load*/
#else
        found = row[x];
        asm volatile("sust.b.1d.b32.trap [%0, {%1}], %2;" ::"l"(plane), "r"(4 * x + 128), "r"(found) : "memory");
#endif
        out[x] = found;
    }
}
