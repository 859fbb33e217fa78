// A sequence lock: CTA 0 writes versions of a record of 4 words, the other CTAs copy a version that is whole.
// launch: grid=4 block=32
// arg: seq u32[1]=zeros
// arg: rec u32[4]=zeros
// arg: name u32[4]=zeros
// arg: out u32[4,4]=zeros
// bug 1: global-race the reader copies with plain loads and trusts the second look at the sequence
// bug 2: global-race the writer's stores are plain
// bug 3: scope words of the record at block scope
// bug 4: global-race the plain name is read behind a relaxed sequence
// bug 5: global-race words are stored as one 64-bit word and loaded as two
// bug 6: clean all volatile
// bug 7: clean fences in place of acquire and release
// bug 8: global-race the name is written after the first version is out
#include <cuda/atomic>
#if BUG == 3
using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
#else
using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
#endif
using Seq = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;
__device__ unsigned get(unsigned* p) {
#if BUG == 1
    return *p;
#elif BUG == 6
    return *(volatile unsigned*)p;
#else
    return Word(*p).load(relaxed);
#endif
}
__device__ void put(unsigned* p, unsigned v) {
#if BUG == 2
    *p = v;
#elif BUG == 6
    *(volatile unsigned*)p = v;
#else
    Word(*p).store(v, relaxed);
#endif
}
extern "C" __global__ void kernel(unsigned* seq, unsigned* rec, unsigned* name, unsigned* out) {
    if (threadIdx.x) return;
    Seq s(*seq);
    if (blockIdx.x == 0) {
#if BUG != 8
        for (int i = 0; i < 4; i++) name[i] = i;
#endif
        for (unsigned v = 1; v <= 3; v++) {
            s.store(2 * v - 1, relaxed);
            cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
#if BUG == 5
            for (int i = 0; i < 4; i += 2)
                asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(rec + i), "l"((unsigned long long)v << 32 | v) : "memory");
#else
            for (int i = 0; i < 4; i++) put(rec + i, v);
#endif
#if BUG == 7
            cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
            s.store(2 * v, relaxed);
#elif BUG == 4
            s.store(2 * v, relaxed);
#else
            s.store(2 * v, cuda::memory_order_release);
#endif
#if BUG == 8
            name[v] = v;
#endif
        }
        return;
    }
    unsigned before, after, got[4];
    do {
#if BUG == 7
        before = s.load(relaxed);
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
#elif BUG == 4
        before = s.load(relaxed);
#else
        before = s.load(cuda::memory_order_acquire);
#endif
        for (int i = 0; i < 4; i++) got[i] = get(rec + i);
#if BUG != 4
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
#endif
        after = s.load(relaxed);
    } while (before == 0 || (before & 1) || before != after);
#if BUG == 4
    for (int i = 0; i < 4; i++) out[blockIdx.x * 4 + i] = got[i] + name[i];
#else
    for (int i = 0; i < 4; i++) out[blockIdx.x * 4 + i] = got[i] + name[i];
#endif
}
