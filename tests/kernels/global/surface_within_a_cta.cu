// R-SU1: threads of a CTA hand bytes of a surface on; a barrier orders them.
//
// launch: grid=2 block=64
// arg:    plane u64=7
// arg:    out u32[128]=zeros
// expect: data-race RAW @store @load severity=error
// backends: cpu
// result: out = (np.arange(128) // 64) * 64 + (np.arange(128) + 1) % 64
extern "C" __global__ void kernel(unsigned long long plane, unsigned* out) {
    unsigned x = threadIdx.x, y = blockIdx.x, next = (x + 1) % 64, found;
    asm volatile("sust.b.2d.b32.trap [%0, {%1, %2}], %3;" ::"l"(plane), "r"(4 * x), "r"(y), "r"(64 * y + x) : "memory");  /*@store*/
#ifndef RACY
    __syncthreads();
#endif
    asm volatile("suld.b.2d.b32.trap %0, [%1, {%2, %3}];" : "=r"(found) : "l"(plane), "r"(4 * next), "r"(y) : "memory");  /*@load*/
    out[64 * y + x] = found;
}
