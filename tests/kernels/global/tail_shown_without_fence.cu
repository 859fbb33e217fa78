// R-GM9: a warp acquires the tail of a queue, and shows it to the other one in shared memory. A fence of the CTA on both sides hands on
// what it has acquired; without them the second warp has not.
//
// launch: grid=2 block=64
// arg:    x f32[32]=arange
// arg:    queue f32[32]=zeros
// arg:    tail i32[1]=zeros
// arg:    out f32[32]=zeros
// expect: global-race RAW @write @read severity=error
// result: out = x
extern "C" __global__ void kernel(const float* x, float* queue, int* tail, float* out) {
    __shared__ volatile int shown;
    int t = threadIdx.x;
    if (t == 0) shown = 0;
    if (blockIdx.x == 0 && t < 32) queue[t] = x[t];  /*@write*/
    __syncthreads();
    if (blockIdx.x == 0) {
        if (t == 0) asm volatile("st.release.gpu.global.s32 [%0], 32;" ::"l"(tail) : "memory");
        return;
    }
    if (t == 0) {
        int seen = 0;
        while (!seen) {
            asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(tail) : "memory");
#ifndef RACY
            __threadfence_block();
#endif
            shown = seen;
        }
    }
    if (t >= 32) {
        while (shown <= t - 32) {}
#ifndef RACY
        __threadfence_block();
#endif
        out[t - 32] = queue[t - 32];  /*@read*/
    }
}
