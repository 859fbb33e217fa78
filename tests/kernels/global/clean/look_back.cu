// Decoupled look-back: each CTA publishes its prefix, packed with a state, and reads that of the CTA before it.
//
// launch: grid=8 block=32
// arg:    state u64[8]=zeros
// arg:    out u32[8]=zeros
// result: out = np.cumsum(np.arange(1, 9)).astype(np.uint32)
extern "C" __global__ void kernel(unsigned long long* state, unsigned* out) {
    if (threadIdx.x) return;
    unsigned sum = blockIdx.x + 1;
    if (blockIdx.x) {
        unsigned long long seen = 0;
        while (!(seen >> 32))
            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(&state[blockIdx.x - 1]) : "memory");
        sum += (unsigned)seen;
    }
    unsigned long long packed = 1ull << 32 | sum;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(&state[blockIdx.x]), "l"(packed) : "memory");
    out[blockIdx.x] = sum;
}
