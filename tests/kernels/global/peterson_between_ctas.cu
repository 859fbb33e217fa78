// Peterson's lock of two CTAs around a plain counter: acquires and releases alone, without fence.sc between stores and looks (R-MO2).
// backends: cpu
// launch: grid=2 block=32
// arg:    words u32[96]=zeros
// arg:    count u32[1]=zeros
// expect: global-race @count @count severity=error
// expect: missing-order RAW severity=warning
// result: count = np.full(1, 2)
#define STORE(form, p, v) asm volatile("st." form ".gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory")
#define LOAD(v, p) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory")
#ifdef RACY
#define FENCE() asm volatile("fence.acq_rel.gpu;" ::: "memory")
#else
#define FENCE() asm volatile("fence.sc.gpu;" ::: "memory")
#endif
extern "C" __global__ void kernel(unsigned* words, unsigned* count) {
    if (threadIdx.x) return;
    unsigned own = blockIdx.x, other = own ^ 1;
    STORE("relaxed", words + 32 * own, 1);
    FENCE();
    STORE("relaxed", words + 64, other);
    FENCE();
    unsigned wants, turn;
    do {
        LOAD(wants, words + 32 * other);
        LOAD(turn, words + 64);
    } while (wants && turn == other);
    (*count)++;  /*@count*/
    STORE("release", words + 32 * own, 0);
}
