// R-RACE: a CTA clears a flag by a plain store, and sets it later. The other CTA, which waits for it, may look before, though it comes late here:
// it first waits for a relaxed store behind the flag, which orders nothing.
//
// launch: grid=2 block=32
// arg:    flag u32[1]=zeros
// arg:    late u32[1]=zeros
// arg:    box u32[32]=zeros
// arg:    out u32[32]=zeros
// expect: global-race @clear @poll severity=error
// result: out = np.arange(32, dtype=np.uint32)
#include <cuda/atomic>
extern "C" __global__ void kernel(unsigned* flag, unsigned* late, unsigned* box, unsigned* out) {
    unsigned t = threadIdx.x;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> handed(*flag), behind(*late);
    if (blockIdx.x == 0) {
#ifdef RACY
        if (t == 0) *flag = 0;  /*@clear*/
#endif
        box[t] = t;
        __syncthreads();
        if (t == 0) {
            handed.store(1, cuda::memory_order_release);
            behind.store(1, cuda::memory_order_relaxed);
        }
    } else {
        if (t == 0) {
            while (behind.load(cuda::memory_order_relaxed) != 1) {}
            while (handed.load(cuda::memory_order_acquire) != 1) {}  /*@poll*/
        }
        __syncthreads();
        out[t] = box[t];
    }
}
