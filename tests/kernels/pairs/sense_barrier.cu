// A barrier of the grid in two levels (counter of a group of CTAs, counter of the groups, a sense), three steps of a pairwise exchange.
// launch: grid=8 block=32
// arg: a f32[8,32]=random
// arg: b f32[8,32]=zeros
// arg: bar u32[8]=zeros
// arg: out f32[8,32]=zeros
// bug 1: global-race the last of a group does not fence behind the group's counter
// bug 2: global-race the leader sets the sense before the last group has come
// bug 3: global-race no fence before the group's counter
// bug 4: global-race no fence behind the sense
// bug 5: clean acq_rel atomics and acquire polls, no fence
// bug 6: clean group counter reset by atomicExch
// bug 7: scope group counter by atomics of the CTA's scope
// bug 8: global-race group counter reset after the sense is set
#include <cuda/atomic>
using Ref = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
__device__ void grid_barrier(unsigned* bar, unsigned step) {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned* group = bar + blockIdx.x / 4;
#if BUG == 5
        if (Ref(*group).fetch_add(1, cuda::memory_order_acq_rel) == 3) {
            Ref(*group).store(0, cuda::memory_order_relaxed);
            if (Ref(bar[2]).fetch_add(1, cuda::memory_order_acq_rel) == 2 * step + 1) Ref(bar[3]).store(step + 1, cuda::memory_order_release);
        }
        while (Ref(bar[3]).load(cuda::memory_order_acquire) <= step) {}
#else
#if BUG != 3
        __threadfence();
#endif
#if BUG == 7
        bool last = atomicAdd_block(group, 1u) == 3;
#else
        bool last = atomicAdd(group, 1u) == 3;
#endif
        if (last) {
#if BUG == 6
            atomicExch(group, 0u);
#elif BUG != 8
            *(volatile unsigned*)group = 0;
#endif
#if BUG != 1
            __threadfence();
#endif
            unsigned before = atomicAdd(bar + 2, 1u);
            if (before == 2 * step + (BUG == 2 ? 0 : 1)) {
                __threadfence();
                *(volatile unsigned*)(bar + 3) = step + 1;
            }
#if BUG == 8
            *group = 0;
#endif
        }
        while (*(volatile unsigned*)(bar + 3) <= step) {}
#if BUG != 4
        __threadfence();
#endif
#endif
    }
    __syncthreads();
}
extern "C" __global__ void kernel(float* a, float* b, unsigned* bar, float* out) {
    int t = threadIdx.x, cta = blockIdx.x;
    for (unsigned step = 0; step < 3; step++) {
        float *from = step % 2 ? b : a, *to = step % 2 ? a : b;
        to[cta * 32 + t] = from[cta * 32 + t] + from[(cta ^ 1 << step) * 32 + t];
        grid_barrier(bar, step);
    }
    out[cta * 32 + t] = b[(cta + 3) % 8 * 32 + t];
}
