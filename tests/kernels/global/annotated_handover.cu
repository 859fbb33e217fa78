// CTA 0 hands a value to CTA 1 by an order that no rule sees: annotations say it. Without them it is a race.
//
// launch: grid=2 block=32
// arg:    data f32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: global-race RAW @write @read severity=error
// result: out = np.float32([3])
// backends: cpu
#include <consan.h>
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        data[0] = 3;  /*@write*/
#ifndef RACY
        consan_release(flag);
#endif
        asm volatile("st.relaxed.gpu.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        unsigned seen;
        do asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (!seen);
#ifndef RACY
        consan_acquire(flag);
#endif
        out[0] = data[0];  /*@read*/
    }
}
