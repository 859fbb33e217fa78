// R-MO1 says nothing of strong reads whose value decides something, though a relaxed flag comes before them: a bound that may be stale (a
// comparison, a minimum, the operand of an atomic), a flag looked at again, a value with a flag in it, an index. Nor of a counter.
//
// launch: grid=2 block=1
// arg:    words u32[8]=zeros
// arg:    flag u32[1]=zeros
// arg:    out u32[8]=zeros
// result: flag = np.uint32([1])
__device__ unsigned look(unsigned* from) {
    unsigned found;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(from) : "memory");
    return found;
}
__device__ void put(unsigned* to, unsigned value) { asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory"); }

extern "C" __global__ void kernel(unsigned* words, unsigned* flag, unsigned* out) {
    if (blockIdx.x == 0) {
        for (int i = 0; i < 5; i++) put(words + i, 1);
        atomicAdd(words + 5, 1);
        put(flag, 1);
    } else {
        while (!look(flag)) {}
        if (look(words) > 3) out[0] = 1;
        out[1] = min(look(words + 1), 7u);
        atomicMax(out + 2, look(words + 2));
        out[3 + look(words + 3)] = 1;
        unsigned packed = look(words + 4);
        out[6] = packed & 1 ? packed >> 1 : 0;
        out[7] = look(words + 5);
    }
}
