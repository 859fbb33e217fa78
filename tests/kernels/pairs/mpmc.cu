// A bounded queue for several producers and consumers (Vyukov): each slot has a sequence number.
// launch: grid=4 block=32
// arg: seq u32[8]=arange
// arg: slots u32[8]=zeros
// arg: ends u32[2]=zeros
// arg: out u32[1]=zeros
// result: out = np.uint32([sum(range(1, 33))])
// bug 1: global-race the sequence is advanced before the item is written
// bug 2: global-race producer advances relaxed
// bug 3: global-race consumer looks relaxed
// bug 4: global-race consumer frees the slot before it reads
// bug 5: global-race consumer frees the slot relaxed
// bug 6: global-race producer looks relaxed at a free slot
// bug 7: scope sequence of the CTA's scope
// bug 8: clean fences and volatile in place of release and acquire
#include <cuda/atomic>
#if BUG == 7
using Ref = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
#else
using Ref = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
#endif
__device__ unsigned look(unsigned* p, bool relaxed) {
#if BUG == 8
    unsigned v = *(volatile unsigned*)p;
    __threadfence();
    return v;
#else
    return Ref(*p).load(relaxed ? cuda::memory_order_relaxed : cuda::memory_order_acquire);
#endif
}
__device__ void tell(unsigned* p, unsigned v, bool relaxed) {
#if BUG == 8
    __threadfence();
    *(volatile unsigned*)p = v;
#else
    Ref(*p).store(v, relaxed ? cuda::memory_order_relaxed : cuda::memory_order_release);
#endif
}
extern "C" __global__ void kernel(unsigned* seq, unsigned* slots, unsigned* ends, unsigned* out) {
    if (threadIdx.x) return;
    if (blockIdx.x < 2) {
        for (int i = 0; i < 16; i++) {
            unsigned at = atomicAdd(ends, 1u);
            while (look(seq + at % 8, BUG == 6) != at) {}
#if BUG == 1
            tell(seq + at % 8, at + 1, false);
#endif
            slots[at % 8] = at + 1;
#if BUG != 1
            tell(seq + at % 8, at + 1, BUG == 2);
#endif
        }
        return;
    }
    for (int i = 0; i < 16; i++) {
        unsigned at = atomicAdd(ends + 1, 1u);
        while (look(seq + at % 8, BUG == 3) != at + 1) {}
#if BUG == 4
        tell(seq + at % 8, at + 8, false);
#endif
        unsigned item = slots[at % 8];
#if BUG != 4
        tell(seq + at % 8, at + 8, BUG == 5);
#endif
        atomicAdd(out, item);
    }
}
