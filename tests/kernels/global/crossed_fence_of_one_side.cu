// Owner and thief, as of a queue with work stealing: the owner raises its flag, the thief another one, and each takes the item if the other's is not
// up. The thief has a fence.sc, the owner has none: its store may come behind its look (R-MO2).
// backends: cpu
// launch: grid=2 block=32
// arg:    flags u32[64]=zeros
// arg:    item u32[1]=zeros
// arg:    out u32[2]=zeros
// expect: global-race @take @steal severity=error
// expect: missing-order RAW severity=warning
// result: flags = np.where(np.arange(64) % 32, 0, 1)
extern "C" __global__ void kernel(volatile unsigned* flags, unsigned* item, unsigned* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        flags[0] = 1;
#ifndef RACY
        __threadfence();
#endif
        if (flags[32] == 0) out[0] = (*item)++;  /*@take*/
    } else {
        flags[32] = 1;
        __threadfence();
        if (flags[0] == 0) out[1] = (*item)++;  /*@steal*/
    }
}
