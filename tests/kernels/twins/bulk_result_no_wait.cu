// The sum that a bulk reduction leaves, and what a plain bulk store leaves, are read with no wait at all: by other threads after a
// barrier, one of them through a generic address (R-B3).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: sum f32[64]=arange
// arg: out f32[64]=zeros
// arg: copy f32[64]=zeros
// expect: missing-wait @add @sum severity=error
// expect: missing-wait @store @generic severity=error
// result: copy = np.concatenate([np.arange(32), 2.0 * np.arange(32, 64)]).astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* sum, float* out, float* copy) {
    __shared__ alignas(128) float tile[64];
    u32 t = threadIdx.x;
    tile[t] = x[t];
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        bulk_add(sum, tile, sizeof(tile)); /*@add*/
        bulk_store(out, tile, sizeof(tile)); /*@store*/
        bulk_commit();
#ifndef RACY
        bulk_wait<0>();
#endif
    }
    __syncthreads();
    float value;
    if (t < 32) asm volatile("ld.f32 %0, [%1];" : "=f"(value) : "l"(out + t) : "memory"); /*@generic*/
    else value = sum[t]; /*@sum*/
    copy[t] = value;
#ifdef RACY
    if (t == 0) bulk_wait<0>();
#endif
}
