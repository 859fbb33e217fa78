// st.bulk clears a buffer: one thread's ordinary stores, which need a barrier like any other. The instruction is Blackwell's.
// launch: grid=1 block=64 arch=sm_100a
// backends: cpu
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race @clear @add severity=error
// allow: uninitialized-read @add severity=error
// result: out = np.where(np.arange(64) < 50, x, 7)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    if (t == 0) asm volatile("st.bulk.weak.shared::cta [%0], %1, 0;" ::"r"(shared(tile)), "n"(200) : "memory");  /*@clear*/
    if (t >= 50) tile[t] = 7;
#ifndef RACY
    __syncthreads();
#endif
    if (t < 50) tile[t] += x[t];  /*@add*/
    __syncthreads();
    out[t] = tile[t];
}
