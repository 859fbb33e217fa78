// G10: data and flags travel in one vector (NCCL's LL protocol): what one access carries needs no order.
//
// launch: grid=2 block=32
// arg:    box u32[128]=zeros
// arg:    out u32[32]=zeros
// result: out = np.arange(32, dtype=np.uint32) * 3
extern "C" __global__ void kernel(unsigned* box, unsigned* out) {
    unsigned *slot = box + 4 * threadIdx.x, a = 0, b = 0, first = 0, second = 0;
    if (blockIdx.x == 0) {
        asm volatile("st.volatile.global.v4.u32 [%0], {%1, %3, %2, %3};" ::"l"(slot), "r"(threadIdx.x), "r"(threadIdx.x * 2), "r"(1) : "memory");
        return;
    }
    do asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(first), "=r"(b), "=r"(second) : "l"(slot) : "memory");
    while (!(first & second));
    out[threadIdx.x] = a + b;
}
