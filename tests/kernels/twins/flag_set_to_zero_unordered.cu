// R-RACE: a warp hands values to another one by a flag that it has set to zero itself. In the racy twin no barrier lies behind that: the
// other warp may look at the flag before.
// launch: grid=1 block=64
// arg: x u32[32]=arange
// arg: out u32[32]=zeros
// expect: data-race @clear @poll severity=error
// result: out = x[::-1]
#include <cuda/atomic>
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ unsigned flag, box[32];
    unsigned t = threadIdx.x;
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> handed(flag);
    if (t == 0) flag = 0;  /*@clear*/
#ifndef RACY
    __syncthreads();
#endif
    if (t < 32) {
        box[t] = x[t];
        __syncwarp();
        if (t == 0) handed.store(1, cuda::memory_order_release);
    } else {
        while (handed.load(cuda::memory_order_acquire) != 1) {}  /*@poll*/
        out[t - 32] = box[63 - t];
    }
}
