// R-RACE: a CTA clears a flag by a plain store, and sets it later. The other CTA, which waits for it, may look before,
// though it comes late here.
//
// launch: grid=2 block=32
// arg:    flag u32[1]=zeros
// arg:    box u32[32]=zeros
// arg:    x u32[256]=arange
// arg:    out u32[32]=zeros
// expect: global-race @clear @poll severity=error
// result: out = np.arange(32, dtype=np.uint32) + x.reshape(8, 32).sum(axis=0).astype(np.uint32)
#include <cuda/atomic>
extern "C" __global__ void kernel(unsigned* flag, unsigned* box, const unsigned* x, unsigned* out) {
    unsigned t = threadIdx.x;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> handed(*flag);
    if (blockIdx.x == 0) {
#ifdef RACY
        if (t == 0) *flag = 0;  /*@clear*/
#endif
        box[t] = t;
        __syncthreads();
        if (t == 0) handed.store(1, cuda::memory_order_release);
    } else {
        unsigned sum = 0;
#pragma unroll 1
        for (unsigned k = 0; k < 256; k += 32) sum += x[k + t];
        if (t == 0)
            while (handed.load(cuda::memory_order_acquire) != 1) {}  /*@poll*/
        __syncthreads();
        out[t] = box[t] + sum;
    }
}
