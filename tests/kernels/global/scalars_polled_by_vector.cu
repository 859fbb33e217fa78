// R-GM10: four threads set a flag of two bytes each, and one load polls them all: it reads from four stores. RACY: one of them is relaxed.
//
// launch: grid=2 block=4
// arg:    data f32[4]=zeros
// arg:    flags u16[4]=zeros
// arg:    out f32[4]=zeros
// expect: global-race @store @load severity=error
// result: out = np.full(4, 7, np.float32)
extern "C" __global__ void kernel(float* data, unsigned short* flags, float* out) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = 7; /*@store*/
#ifdef RACY
        if (t == 2) asm volatile("st.relaxed.gpu.global.b16 [%0], %1;" ::"l"(flags + t), "h"((short)1) : "memory");
        else
#endif
            asm volatile("st.release.gpu.global.b16 [%0], %1;" ::"l"(flags + t), "h"((short)1) : "memory");
    } else {
        short a = 0, b = 0, c = 0, d = 0;
        while (!(a & b & c & d))
            asm volatile("ld.acquire.gpu.global.v4.b16 {%0, %1, %2, %3}, [%4];" : "=h"(a), "=h"(b), "=h"(c), "=h"(d) : "l"(flags) : "memory");
        out[t] = data[3 - t]; /*@load*/
    }
}
