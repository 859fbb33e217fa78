// R-GM3: a ring of four slots between CTAs. The producer fills a fifth before the first is free.
//
// launch: grid=2 block=64
// arg:    ring f32[256]=zeros
// arg:    counts u32[2]=zeros
// arg:    x f32[768]=random
// arg:    out f32[768]=zeros
// backends: cpu
// expect: global-race @fill @take severity=error
// result: out = x * 2
#include <cuda/atomic>
using count = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
constexpr unsigned SLOTS = 4, MESSAGES = 12;
extern "C" __global__ void kernel(float* ring, unsigned* counts, const float* x, float* out) {
    const unsigned t = threadIdx.x;
    count filled(counts[0]), taken(counts[1]);
#ifdef RACY
    const unsigned most = SLOTS + 1;
#else
    const unsigned most = SLOTS;
#endif
    for (unsigned k = 0; k < MESSAGES; k++) {
        float* slot = ring + k % SLOTS * 64;
        if (blockIdx.x == 0) {
            if (t == 0)
                while (k - taken.load(cuda::memory_order_acquire) >= most) {}
            __syncthreads();
            slot[t] = x[k * 64 + t];  /*@fill*/
            __syncthreads();
            if (t == 0) filled.store(k + 1, cuda::memory_order_release);
        } else {
            if (t == 0)
                while (filled.load(cuda::memory_order_acquire) <= k) {}
            __syncthreads();
            out[k * 64 + t] = slot[t] * 2;  /*@take*/
            __syncthreads();
            if (t == 0) taken.store(k + 1, cuda::memory_order_release);
        }
    }
}
