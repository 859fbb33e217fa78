// Weight gradients of layer norm as Triton's tutorial has them: CTAs add their rows to one of 2 partial sums, each under a lock.
// launch: grid=6 block=64
// arg: dy f32[6,64]=random
// arg: part f32[2,64]=zeros
// arg: locks i32[4]=zeros
// arg: out f32[1]=zeros
// bug 1: global-race no barrier before the release of the lock
// bug 2: global-race no barrier behind the acquisition
// bug 3: global-race the lock is released without a fence
// bug 4: global-race the lock is taken without a fence
// bug 6: global-race the lock of the other group
// bug 7: clean count by plain accesses, fences by all threads
// bug 8: clean lock as cuda::atomic_ref with acquire and release
// bug 9: scope the same at thread_scope_block
// bug 10: global-race the lock is released by a plain store
// bug 11: clean release by volatile store behind the fence
#include <cuda/atomic>
#if BUG == 9
using Ref = cuda::atomic_ref<int, cuda::thread_scope_block>;
#else
using Ref = cuda::atomic_ref<int, cuda::thread_scope_device>;
#endif
extern "C" __global__ void kernel(const float* __restrict__ dy, float* part, int* locks, float* out) {
    int t = threadIdx.x, group = blockIdx.x % 2;
    int* lock = locks + group;
    int* count = locks + 2 + group;
#if BUG == 6
    if (blockIdx.x == 3) lock = locks;
#endif
    float* sum = part + group * 64;
    float v = dy[blockIdx.x * 64 + t];
#if BUG == 5
    int first = *(volatile int*)count == 0;
    float old = first ? 0.f : sum[t];
#endif
    if (t == 0) {
#if BUG == 8 || BUG == 9
        int free = 0;
        while (!Ref(*lock).compare_exchange_weak(free, 1, cuda::memory_order_acquire)) free = 0;
#else
        while (atomicCAS(lock, 0, 1) == 1) {}
#if BUG != 4
        __threadfence();
#endif
#endif
    }
#if BUG != 2
    __syncthreads();
#endif
#if BUG == 7
    __threadfence();
    int seen = *count;
    __syncthreads();
    if (seen == 0) { if (t == 0) *count = 1; sum[t] = v; } else sum[t] += v;
    __threadfence();
#elif BUG == 5
    if (first && t == 0) atomicExch(count, 1);
    sum[t] = old + v;
#else
    if (*(volatile int*)count == 0) sum[t] = v; else sum[t] += v;
#endif
#if BUG != 1
    __syncthreads();
#endif
    if (t == 0) {
#if BUG != 7 && BUG != 5
        *(volatile int*)count = 1;
#endif
#if BUG == 8 || BUG == 9
        Ref(*lock).store(0, cuda::memory_order_release);
#else
#if BUG != 3
        __threadfence();
#endif
#if BUG == 10
        *lock = 0;
#elif BUG == 11
        *(volatile int*)lock = 0;
#else
        atomicExch(lock, 0);
#endif
#endif
    }
}
