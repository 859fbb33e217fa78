// R-GM3: a ring of four slots between warps of two CTAs. All of their lanes poll. The producer fills a fifth before the first is free.
//
// launch: grid=2 block=32
// arg:    ring u32[128]=zeros
// arg:    counts u32[2]=zeros
// arg:    out u32[384]=zeros
// backends: cpu
// expect: global-race @fill @take severity=error
// result: out = np.repeat(np.arange(12, dtype=np.uint32), 32)
#include <cuda/atomic>
using count = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
constexpr unsigned SLOTS = 4, MESSAGES = 12;
extern "C" __global__ void kernel(unsigned* ring, unsigned* counts, unsigned* out) {
    const unsigned t = threadIdx.x;
    count filled(counts[0]), taken(counts[1]);
#ifdef RACY
    const unsigned most = SLOTS + 1;
#else
    const unsigned most = SLOTS;
#endif
    for (unsigned k = 0; k < MESSAGES; k++) {
        unsigned* slot = ring + k % SLOTS * 32;
        if (blockIdx.x == 0) {
            while (k - taken.load(cuda::memory_order_acquire) >= most) {}
            slot[t] = k;  /*@fill*/
            __syncwarp();
            if (t == 0) filled.store(k + 1, cuda::memory_order_release);
        } else {
            while (filled.load(cuda::memory_order_acquire) <= k) {}
            out[k * 32 + t] = slot[t];  /*@take*/
            __syncwarp();
            if (t == 0) taken.store(k + 1, cuda::memory_order_release);
        }
    }
}
