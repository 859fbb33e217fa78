// Threads of all CTAs push their nodes to one list, and read the value of the node before theirs. No fence publishes the value. The race is one
// between CTAs and one within a CTA, and the repair has to serve both.
// launch: grid=4 block=32
// arg: head u32[1]=zeros
// arg: next u32[129]=zeros
// arg: value u32[129]=zeros
// arg: out u32[128]=zeros
// expect: global-race RAW @write @read severity=error
// allow: data-race RAW
// result: value = np.arange(129).astype(np.uint32) * 3
extern "C" __global__ void kernel(unsigned* head, unsigned* next, unsigned* value, unsigned* out) {
    unsigned own = 1 + blockIdx.x * 32 + threadIdx.x;
    value[own] = own * 3;  /*@write*/
    unsigned last = *(volatile unsigned*)head;
    while (true) {
        next[own] = last;
#ifndef RACY
        __threadfence();
#endif
        unsigned found = atomicCAS(head, last, own);
        if (found == last) break;
        last = found;
    }
    __threadfence();
    out[own - 1] = last ? value[last] : 0;  /*@read*/
}
