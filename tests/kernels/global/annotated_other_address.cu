// An acquire of another address takes nothing: an address names an order.
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
        consan_release(data);
        asm volatile("st.relaxed.gpu.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        unsigned seen;
        do asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (!seen);
#ifdef RACY
        consan_acquire(flag);
#else
        consan_acquire(data);
#endif
        out[0] = data[0];  /*@read*/
    }
}
