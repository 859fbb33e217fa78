// A ring of 4 slots in global memory between a producer CTA and a consumer CTA, 12 messages.
// launch: grid=2 block=64
// arg: ring f32[4,64]=zeros
// arg: pc u32[2]=zeros
// arg: x f32[12,64]=random
// arg: out f32[12,64]=zeros
// result: out = x * 2
// bug 1: global-race producer does not wait for free slots
// bug 2: global-race waits with an off by one: one slot too many
// bug 3: global-race no barrier before the tail is advanced
// bug 4: global-race no barrier before the head is advanced
// bug 5: global-race head advanced before the slot is read
// bug 6: global-race relaxed store of tail
// bug 7: global-race producer's poll by thread 0, others do not wait
// bug 8: deadlock|global-race consumer waits for tail >= k
// bug 9: clean volatile with fences
// bug 10: scope thread_scope_block
#include <cuda/atomic>
#if BUG == 10
using ref = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
#else
using ref = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
#endif
__device__ void publish(unsigned* p, unsigned v) {
#if BUG == 9
    __threadfence();
    *(volatile unsigned*)p = v;
#else
    ref(*p).store(v, BUG == 6 ? cuda::memory_order_relaxed : cuda::memory_order_release);
#endif
}
__device__ unsigned look(unsigned* p) {
#if BUG == 9
    unsigned v = *(volatile unsigned*)p;
    __threadfence();
    return v;
#else
    return ref(*p).load(cuda::memory_order_acquire);
#endif
}
extern "C" __global__ void kernel(float* ring, unsigned* pc, const float* x, float* out) {
    const unsigned t = threadIdx.x;
    unsigned *tail = pc, *head = pc + 1;
    if (blockIdx.x == 0) {
        for (unsigned k = 0; k < 12; k++) {
#if BUG != 1
            if (t == 0) {
#if BUG == 2
                while (k - look(head) > 4) {}
#else
                while (k - look(head) >= 4) {}
#endif
            }
#endif
#if BUG != 7
            __syncthreads();
#endif
            ring[k % 4 * 64 + t] = x[k * 64 + t];
#if BUG != 3
            __syncthreads();
#endif
            if (t == 0) publish(tail, k + 1);
        }
    } else {
        for (unsigned k = 0; k < 12; k++) {
            if (t == 0) {
#if BUG == 8
                while (look(tail) < k) {}
#else
                while (look(tail) <= k) {}
#endif
            }
            __syncthreads();
#if BUG == 5
            if (t == 0) publish(head, k + 1);
#endif
            float v = ring[k % 4 * 64 + t];
            out[k * 64 + t] = v * 2.f;
#if BUG != 4
            __syncthreads();
#endif
#if BUG != 5
            if (t == 0) publish(head, k + 1);
#endif
        }
    }
}
