// Forms of polling a flag that another CTA sets by release.
// launch: grid=2 block=32
// arg: data f32[32]=zeros
// arg: flag u32[4]=zeros
// arg: out f32[32]=zeros
// result: out = np.arange(32) + 1.0
// bug 1: global-race ld.global.ca
// bug 2: global-race __ldcg
// bug 3: global-race __ldcv
// bug 4: clean atomicCAS(flag, 1, 1) and a fence
// bug 5: clean atomicOr(flag, 0) and a fence, with __nanosleep
// bug 6: clean ld.volatile and fence.acq_rel.gpu
// bug 7: global-race ld.volatile, fence before the load
// bug 8: scope fence.acq_rel.cta behind ld.volatile
// bug 9: clean ld.acquire.sys
// bug 10: clean cuda::atomic_ref wait and notify_all
// bug 12: clean ld.relaxed.gpu with fence.sc
// bug 13: global-race ld.acquire of the flag's upper half
#include <cuda/atomic>
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    int t = threadIdx.x;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> f(*flag);
    if (blockIdx.x == 0) {
        data[t] = t + 1.0f;
        __syncthreads();
        if (t == 0) {
#if BUG == 10
            f.store(0x10001, cuda::memory_order_release);
            f.notify_all();
#else
            asm volatile("st.release.gpu.global.u32 [%0], 0x10001;" ::"l"(flag) : "memory");
#endif
        }
        return;
    }
    unsigned v = 0;
    int rounds = 0;
    if (t == 0) {
#if BUG == 1
        do asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); while (!v && ++rounds < 5000);
        __threadfence();
#elif BUG == 2
        do { v = __ldcg(flag); } while (!v && ++rounds < 5000);
        __threadfence();
#elif BUG == 3
        do { v = __ldcv(flag); } while (!v && ++rounds < 5000);
        __threadfence();
#elif BUG == 4
        while (atomicCAS(flag, 0x10001u, 0x10001u) != 0x10001u) {}
        __threadfence();
#elif BUG == 5
        while (atomicOr(flag, 0u) == 0) __nanosleep(50);
        __threadfence();
#elif BUG == 6 || BUG == 8 || BUG == 7
        do {
#if BUG == 7
            __threadfence();
#endif
            asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
        } while (!v);
#if BUG == 6
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
#elif BUG == 8
        asm volatile("fence.acq_rel.cta;" ::: "memory");
#endif
#elif BUG == 9
        do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); while (!v);
#elif BUG == 10
        f.wait(0, cuda::memory_order_acquire);
#elif BUG == 11
        while (f.exchange(0x10001, cuda::memory_order_relaxed) == 0) f.store(0, cuda::memory_order_relaxed);
#elif BUG == 12
        do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); while (!v);
        asm volatile("fence.sc.gpu;" ::: "memory");
#elif BUG == 13
        unsigned short h;
        do asm volatile("ld.acquire.gpu.global.u16 %0, [%1];" : "=h"(h) : "l"((char*)flag + 2) : "memory"); while (!h);
#else
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); while (!v);
#endif
    }
    __syncthreads();
    out[t] = data[t];
}
