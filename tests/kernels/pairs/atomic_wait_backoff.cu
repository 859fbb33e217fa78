// cuda::atomic_ref and libcu++ waits within a CTA: a ready count with wait(), a mailbox guarded by release and acquire.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[2,64]=random
// arg: out f32[2,32]=zeros
// result: out = x[:, :32] + x[:, 32:][:, ::-1]
// bug 1: deadlock the count is one short
// bug 2: data-race relaxed add, no fence
// bug 3: data-race relaxed look, no fence
// bug 4: clean relaxed add behind a fence, relaxed look before one
// bug 5: deadlock one lane leaves without adding
// bug 6: clean the count is reset by the last reader, behind a barrier
// bug 7: data-race the look is a plain volatile load without a fence
#include <cuda/atomic>
extern "C" __global__ void __launch_bounds__(64) kernel(const float* x, float* out) {
    __shared__ float box[32];
    __shared__ unsigned count;
    const int t = threadIdx.x;
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> ready(count);
    if (t == 0) count = 0;
    __syncthreads();
    if (t >= 32) {
        if (BUG == 5 && t == 40) return;
        box[t - 32] = x[blockIdx.x * 64 + t];
#if BUG == 2
        ready.fetch_add(1, cuda::memory_order_relaxed);
#elif BUG == 4
        cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_block);
        ready.fetch_add(1, cuda::memory_order_relaxed);
#else
        ready.fetch_add(1, cuda::memory_order_release);
#endif
    } else {
        const unsigned wanted = BUG == 1 ? 33 : 32;
#if BUG == 3
        while (ready.load(cuda::memory_order_relaxed) != wanted) __nanosleep(20);
#elif BUG == 4
        while (ready.load(cuda::memory_order_relaxed) != wanted) __nanosleep(20);
        cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_block);
#elif BUG == 7
        while (*(volatile unsigned*)&count != wanted) __nanosleep(20);
#else
        for (unsigned seen; (seen = ready.load(cuda::memory_order_acquire)) != wanted;) ready.wait(seen, cuda::memory_order_relaxed);
#endif
        out[blockIdx.x * 32 + t] = x[blockIdx.x * 64 + t] + box[31 - t];
    }
#if BUG == 6
    __syncthreads();
    if (t == 0) count = 0;
#endif
}
