// Lamport's bakery of two CTAs, with acquires and releases alone. A thread has two flags of its own: that it chooses, and its number. The store that
// crosses is not the last one before the look (R-MO2).
// launch: grid=2 block=32
// arg:    choosing u32[2]=zeros
// arg:    number u32[2]=zeros
// arg:    sum u32[1]=zeros
// backends: cpu
// expect: missing-order RAW severity=warning
// result: sum = np.full(1, 3)
__device__ unsigned load(const unsigned* p) {
    unsigned found;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(p) : "memory");
    return found;
}
__device__ void store(unsigned* p, unsigned value) { asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory"); }
__device__ void fence() {
#ifdef RACY
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
#else
    asm volatile("fence.sc.gpu;" ::: "memory");
#endif
}
extern "C" __global__ void kernel(unsigned* choosing, unsigned* number, unsigned* sum) {
    if (threadIdx.x) return;
    unsigned me = blockIdx.x, other = me ^ 1;
    store(choosing + me, 1);
    fence();
    unsigned mine = load(number + other) + 1;
    store(number + me, mine);
    fence();
    store(choosing + me, 0);
    fence();
    while (load(choosing + other)) {}
    fence();
    unsigned his;
    do his = load(number + other);
    while (his && (his < mine || (his == mine && other < me)));
    fence();
    *sum += me + 1;
    fence();
    store(number + me, 0);
}
