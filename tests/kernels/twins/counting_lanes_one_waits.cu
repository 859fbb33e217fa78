// R-W1: lanes count themselves, the last one first. Then one of them waits for the other warp, and in the racy twin the others read at once.
// launch: grid=1 block=64
// arg: x f32[32]=random
// arg: out f32[32]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
#include <cuda/atomic>
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[32];
    __shared__ unsigned flag, counter;
    unsigned t = threadIdx.x;
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> handed(flag), count(counter);
    if (t == 0) flag = counter = 0;
    __syncthreads();
    if (t < 32) {
#pragma unroll 1
        for (int k = 31; k >= 0; k--)
            if (t == k && count.fetch_add(1, cuda::memory_order_relaxed) > 31) __trap();
        if (t == 0)
            while (handed.load(cuda::memory_order_acquire) != 1) {}
#ifndef RACY
        __syncwarp();
#endif
        out[t] = s[31 - t];  /*@read*/
    } else {
        s[t - 32] = x[t - 32];  /*@write*/
        __syncwarp();
        if (t == 32) handed.store(1, cuda::memory_order_release);
    }
}
