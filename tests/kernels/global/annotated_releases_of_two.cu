// Two CTAs release to a third, which acquires once: an acquire takes all releases before it.
//
// launch: grid=3 block=32
// arg:    data f32[2]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: global-race RAW @write @read severity=error
// result: out = np.float32([3])
// backends: cpu
#include <consan.h>
extern "C" __global__ void kernel(float* data, unsigned* count, float* out) {
    if (threadIdx.x) return;
    if (blockIdx.x < 2) {
        data[blockIdx.x] = 1 + blockIdx.x;  /*@write*/
#ifndef RACY
        consan_release(count);
#else
        if (blockIdx.x) consan_release(count);
#endif
        asm volatile("red.relaxed.gpu.add.u32 [%0], 1;" ::"l"(count) : "memory");
    } else {
        unsigned seen;
        do asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
        while (seen < 2);
        consan_acquire(count);
        out[0] = data[0] + data[1];  /*@read*/
    }
}
