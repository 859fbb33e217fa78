// Split-K with cp.reduce.async.bulk: four CTAs add their part to the output; the last one to come (a ticket) applies the activation.
// launch: grid=4 block=128 arch=sm_90
// arg: x f32[4,256]=random
// arg: sum f32[256]=zeros
// arg: ticket u32[1]=zeros
// arg: y f32[256]=zeros
// result: y = x.sum(0) + 1
// bug 1: missing-wait|global-race wait_group.read before the ticket
// bug 2: missing-wait|global-race no wait before the ticket
// bug 3: missing-wait|global-race the commit is missing
// bug 4: missing-proxy-fence no proxy fence before the reduction
// bug 5: global-race|scope|missing-wait the ticket is relaxed and has no fence
// bug 6: global-race no fence by the last CTA
// bug 7: scope __threadfence_block before the ticket
// bug 9: clean acq_rel of the ticket by cuda::atomic_ref
// bug 10: scope the same with thread_scope_block
// bug 11: global-race|missing-wait the ticket comes from a thread that did not wait for the group
#include "../hopper.cuh"
#include <cuda/atomic>
extern "C" __global__ void __launch_bounds__(128) kernel(const float* x, float* sum, u32* ticket, float* y) {
    __shared__ alignas(128) float part[256];
    __shared__ u32 last;
    const u32 t = threadIdx.x;
    for (u32 i = t; i < 256; i += 128) part[i] = x[blockIdx.x * 256 + i];
#if BUG != 4
    fence_async_shared();
#endif
    __syncthreads();
    if (t == 0) {
        bulk_add(sum, part, 1024);
#if BUG != 3
        bulk_commit();
#endif
#if BUG == 1
        bulk_wait_read<0>();
#elif BUG != 2
        bulk_wait<0>();
#endif
    }
#if BUG == 11
    if (t == 32) {
#else
    if (t == 0) {
#endif
#if BUG == 9
        last = cuda::atomic_ref<u32, cuda::thread_scope_device>(*ticket).fetch_add(1, cuda::memory_order_acq_rel) == 3;
#elif BUG == 10
        last = cuda::atomic_ref<u32, cuda::thread_scope_block>(*ticket).fetch_add(1, cuda::memory_order_acq_rel) == 3;
#else
#if BUG == 7
        __threadfence_block();
#elif BUG != 5
        __threadfence();
#endif
        last = atomicAdd(ticket, 1) == 3;
#if BUG != 6
        __threadfence();
#endif
#endif
    }
    __syncthreads();
    if (!last) return;
    for (u32 i = t; i < 256; i += 128) y[i] = sum[i] + 1.0f;
}
