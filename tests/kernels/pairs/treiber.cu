// A stack of nodes (Treiber): CTAs push their nodes by CAS on the head; then others pop by CAS and read the payload.
// launch: grid=4 block=32
// arg: head u64[1]=zeros
// arg: next u32[65]=zeros
// arg: value f32[65]=zeros
// arg: out f32[2,32]=zeros
// bug 1: global-race no fence before the CAS that publishes
// bug 2: global-race no fence behind the CAS that takes
// bug 3: global-race|data-race the head is read plainly
// bug 4: scope fence of the CTA before the CAS
// bug 5: clean release and acquire by cuda::atomic_ref
// bug 6: global-race payload is written after the push
// bug 7: scope CAS of the CTA's scope
// bug 8: global-race|data-race link is written after the push
#include <cuda/atomic>
typedef unsigned long long u64;
using Ref = cuda::atomic_ref<u64, cuda::thread_scope_device>;
extern "C" __global__ void kernel(u64* head, unsigned* next, float* value, float* out) {
    int t = threadIdx.x, b = blockIdx.x;
    if (b < 2) {
        unsigned node = 1 + b * 32 + t;
#if BUG != 6
        value[node] = node * 0.5f;
#endif
        u64 old = *(volatile u64*)head, want;
        do {
            want = old;
#if BUG != 8
            *(volatile unsigned*)(next + node) = (unsigned)want;
#endif
            u64 mine = ((want >> 32) + 1) << 32 | node;
#if BUG == 5
            old = want; if (Ref(*head).compare_exchange_strong(old, mine, cuda::memory_order_release)) old = want;
#else
#if BUG == 4
            __threadfence_block();
#elif BUG != 1
            __threadfence();
#endif
#if BUG == 7
            old = atomicCAS_block(head, want, mine);
#else
            old = atomicCAS(head, want, mine);
#endif
#endif
        } while (old != want);
#if BUG == 6
        value[node] = node * 0.5f;
#elif BUG == 8
        next[node] = (unsigned)want;
#endif
        return;
    }
    float got = 0;
    for (int tries = 0; tries < 4 && got == 0; tries++) {
#if BUG == 3
        u64 old = *head;
#elif BUG == 5
        u64 old = Ref(*head).load(cuda::memory_order_acquire);
#else
        u64 old = *(volatile u64*)head;
#endif
        unsigned node = (unsigned)old;
        if (!node) continue;
        unsigned after = *(volatile unsigned*)(next + node);
        u64 mine = ((old >> 32) + 1) << 32 | after;
#if BUG == 5
        u64 want = old;
        if (!Ref(*head).compare_exchange_strong(want, mine, cuda::memory_order_acquire)) continue;
#elif BUG == 7
        if (atomicCAS_block(head, old, mine) != old) continue;
#else
        if (atomicCAS(head, old, mine) != old) continue;
#if BUG != 2
        __threadfence();
#endif
#endif
        got = value[node];
    }
    out[(b - 2) * 32 + t] = got;
}
