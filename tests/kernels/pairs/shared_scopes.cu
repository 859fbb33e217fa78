// Shared-memory atomics: counters, locks, flags between warps, of all scopes and orders, by cuda::atomic_ref and PTX.
// launch: grid=2 block=96 arch=sm_80
// arg: x u32[2,96]=random
// arg: out u32[2,96]=zeros
// bug 1: data-race flag by volatile store without a fence
// bug 2: clean flag by volatile with __threadfence_block on both sides
// bug 3: data-race relaxed atomic flag
// bug 4: clean release and acquire at thread_scope_block
// bug 5: clean release and acquire at thread_scope_thread: libcu++ makes it .cta, the narrowest scope of PTX
// bug 6: clean a counter: fetch_add acq_rel, the last reads
// bug 7: data-race counter relaxed
// bug 8: data-race plain poll of the flag
// bug 9: data-race a lock by atomicExch released with a plain store
// bug 10: clean a lock with fences
// bug 11: data-race a lock with no fence at the release
#include <cuda/atomic>
typedef unsigned u32;
extern "C" __global__ void __launch_bounds__(96) kernel(const u32* x, u32* out) {
    __shared__ u32 data[96], flag, total;
    const u32 t = threadIdx.x;
    if (t == 0) flag = 0, total = 0;
    data[t] = 0;
    __syncthreads();
    u32 r = 0;
#if BUG >= 9
    if (t % 32 == 0) {
        while (atomicCAS(&flag, 0, 1) != 0) {}
        __threadfence_block();
        total += x[blockIdx.x * 96 + t];
#if BUG != 11
        __threadfence_block();
#endif
#if BUG == 9
        flag = 0;
#else
        atomicExch(&flag, 0);
#endif
    }
    __syncthreads();
    r = total;
#elif BUG == 6 || BUG == 7
    data[t] = x[blockIdx.x * 96 + t];
    __syncwarp();
    if (t % 32 == 0) {
        u32 n = cuda::atomic_ref<u32, cuda::thread_scope_block>(flag).fetch_add(1, BUG == 7 ? cuda::memory_order_relaxed : cuda::memory_order_acq_rel);
        if (n == 2) for (int i = 0; i < 96; i++) r += data[i];
    }
#else
    if (t < 32) {
        data[t] = x[blockIdx.x * 96 + t];
        __syncwarp();
        if (t == 0) {
#if BUG == 1 || BUG == 2
#if BUG == 2
            __threadfence_block();
#endif
            *(volatile u32*)&flag = 1;
#elif BUG == 3
            cuda::atomic_ref<u32, cuda::thread_scope_block>(flag).store(1, cuda::memory_order_relaxed);
#elif BUG == 5
            cuda::atomic_ref<u32, cuda::thread_scope_thread>(flag).store(1, cuda::memory_order_release);
#else
            cuda::atomic_ref<u32, cuda::thread_scope_block>(flag).store(1, cuda::memory_order_release);
#endif
        }
    } else {
#if BUG == 1 || BUG == 2
        while (*(volatile u32*)&flag == 0) {}
#if BUG == 2
        __threadfence_block();
#endif
#elif BUG == 3
        while (cuda::atomic_ref<u32, cuda::thread_scope_block>(flag).load(cuda::memory_order_relaxed) == 0) {}
#elif BUG == 5
        while (cuda::atomic_ref<u32, cuda::thread_scope_thread>(flag).load(cuda::memory_order_acquire) == 0) {}
#elif BUG == 8
        u32 f;
        do asm volatile("ld.shared.u32 %0, [%1];" : "=r"(f) : "r"((u32)__cvta_generic_to_shared(&flag)) : "memory"); while (!f);
#else
        while (cuda::atomic_ref<u32, cuda::thread_scope_block>(flag).load(cuda::memory_order_acquire) == 0) {}
#endif
        r = data[t % 32];
    }
#endif
    out[blockIdx.x * 96 + t] = r;
}
