// Two CTAs store the same value at two places of the source: a warning. One instruction that stores one value is a note.
//
// launch: grid=2 block=32
// arg:    changed u32[1]=zeros
// expect: global-race WAW @one @other severity=warning
// result: changed = np.uint32([1])
extern "C" __global__ void kernel(unsigned* changed) {
    if (threadIdx.x) return;
#ifdef RACY
    if (blockIdx.x == 0) asm volatile("st.global.u32 [%0], 1;" ::"l"(changed) : "memory");  /*@one*/
    else asm volatile("st.global.u32 [%0], %1;" ::"l"(changed), "r"(blockIdx.x) : "memory");  /*@other*/
#else
    atomicExch(changed, 1);
#endif
}
