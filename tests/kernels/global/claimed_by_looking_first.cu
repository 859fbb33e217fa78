// CTAs look at a word, and the one that finds it free takes it. Several can find it free. The word of a counter goes on by an atomic operation
// that a plain look decides.
//
// launch: grid=4 block=32
// arg:    owner u32[1]=zeros
// arg:    count u32[1]=zeros
// arg:    won u32[1]=zeros
// expect: global-race @look @take severity=error
// allow: global-race @take @take severity=error
// expect: global-race @limit @count severity=error
// result: won = np.ones(1, np.uint32)
// result: count = np.full(1, 2, np.uint32)
extern "C" __global__ void kernel(unsigned* owner, unsigned* count, unsigned* won) {
    if (threadIdx.x) return;
#ifdef RACY
    if (*owner == 0) {  /*@look*/
        *owner = blockIdx.x + 1;  /*@take*/
        atomicAdd(won, 1);
    }
    if (*count < 2) atomicAdd(count, 1);  /*@limit*/ /*@count*/
#else
    if (atomicCAS(owner, 0, blockIdx.x + 1) == 0) atomicAdd(won, 1);
    for (unsigned seen = 0, old; seen < 2; seen = old) {
        old = atomicCAS(count, seen, seen + 1);
        if (old == seen) break;
    }
#endif
}
