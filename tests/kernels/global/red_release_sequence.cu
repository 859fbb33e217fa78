// G4: reductions hand on what was released before them; a relaxed reduction releases nothing itself.
//
// launch: grid=3 block=32
// arg:    data f32[2]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: global-race @store @load severity=error
// result: out = np.float32([3])
extern "C" __global__ void kernel(float* data, unsigned* count, float* out) {
    if (threadIdx.x) return;
    if (blockIdx.x < 2) {
        data[blockIdx.x] = blockIdx.x + 1;  /*@store*/
#ifdef RACY
        asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
#else
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
#endif
    } else {
        unsigned seen = 0;
        while (seen != 2) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
        *out = data[0] + data[1];  /*@load*/
    }
}
