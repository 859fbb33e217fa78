// G10: value and flag in one 64-bit word, relaxed: the flag's reader has the value.
//
// launch: grid=2 block=32
// arg:    box u64[32]=zeros
// arg:    out u32[32]=zeros
// result: out = np.arange(32, dtype=np.uint32)
extern "C" __global__ void kernel(unsigned long long* box, unsigned* out) {
    if (blockIdx.x == 0) {
        unsigned long long packed = 1ull << 32 | threadIdx.x;
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(&box[threadIdx.x]), "l"(packed) : "memory");
    } else {
        unsigned long long seen = 0;
        while (!(seen >> 32)) asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(&box[threadIdx.x]) : "memory");
        out[threadIdx.x] = (unsigned)seen;
    }
}
