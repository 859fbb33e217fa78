// Producers push items into a queue in global memory (slot, then ready flag per slot); consumers pop with a head counter.
// launch: grid=4 block=64
// arg: items f32[16,32]=zeros
// arg: ready u32[16]=zeros
// arg: head u32[2]=zeros
// arg: out f32[16]=zeros
// result: out = np.arange(16) * 32 + 496
// bug 1: global-race|data-race ready before the item
// bug 2: global-race|data-race warn no __syncwarp before ready
// bug 3: global-race|data-race consumer polls one slot and reads the next
// bug 4: global-race|data-race relaxed poll
// bug 5: global-race|data-race warn lane 0 polls, no __syncwarp
// bug 6: global-race|data-race tail is read instead of the ready flag
// bug 7: clean fence by every lane
#include <cuda/atomic>
extern "C" __global__ void kernel(float* items, unsigned* ready, unsigned* head, float* out) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (warp == 0) {  // producer: 4 items of each CTA
        for (int i = 0; i < 4; i++) {
            unsigned slot = 0;
            if (lane == 0) slot = atomicAdd(&head[0], 1u);
            slot = __shfl_sync(~0u, slot, 0);
            float* item = items + slot * 32;
#if BUG == 1
            if (lane == 0) cuda::atomic_ref<unsigned, cuda::thread_scope_device>(ready[slot]).store(1, cuda::memory_order_release);
            item[lane] = (float)(slot + lane);
#else
            item[lane] = (float)(slot + lane);
#if BUG == 7
            __threadfence();
#endif
#if BUG != 2
            __syncwarp();
#endif
            if (lane == 0) cuda::atomic_ref<unsigned, cuda::thread_scope_device>(ready[slot]).store(1, cuda::memory_order_release);
#endif
        }
    } else {
        for (int i = 0; i < 4; i++) {
            unsigned slot = 0;
            if (lane == 0) {
                slot = atomicAdd(&head[1], 1u);
#if BUG == 6
                while (cuda::atomic_ref<unsigned, cuda::thread_scope_device>(head[0]).load(cuda::memory_order_acquire) <= slot) {}
#elif BUG == 4
                while (cuda::atomic_ref<unsigned, cuda::thread_scope_device>(ready[slot]).load(cuda::memory_order_relaxed) == 0) {}
#elif BUG == 3
                while (cuda::atomic_ref<unsigned, cuda::thread_scope_device>(ready[slot ? slot - 1 : 0]).load(cuda::memory_order_acquire) == 0) {}
#else
                while (cuda::atomic_ref<unsigned, cuda::thread_scope_device>(ready[slot]).load(cuda::memory_order_acquire) == 0) {}
#endif
            }
            slot = __shfl_sync(~0u, slot, 0);
#if BUG != 5
            __syncwarp();
#endif
            float v = items[slot * 32 + lane];
            for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
            if (lane == 0) out[slot] = v;
        }
    }
}
