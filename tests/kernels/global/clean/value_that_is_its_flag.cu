// R-GM10: values that are zero until they are done, stored as a vector. One load polls each, so nothing else is ordered by it.
//
// launch: grid=2 block=32
// arg:    values f32[64]=zeros
// arg:    out f32[64]=zeros
// result: out = np.arange(64, dtype=np.float32) + 1
extern "C" __global__ void kernel(float* values, float* out) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        asm volatile("st.relaxed.gpu.global.v2.f32 [%0], {%1, %2};" ::"l"(values + 2 * t), "f"(2 * t + 1.f), "f"(2 * t + 2.f) : "memory");
    } else {
        for (int i = t; i < 64; i += 32) {
            float seen = 0;
            while (seen == 0) asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(seen) : "l"(values + i) : "memory");
            out[i] = seen;
        }
    }
}
