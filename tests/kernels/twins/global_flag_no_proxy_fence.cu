// A flag in global memory, that another kernel or CTA sets, is polled with ordinary loads; then what it tells of is loaded by bulk copy, by another
// thread after a barrier, with no proxy fence for global memory: SEMANTICS D14, reported under --policy isa only.
// launch: grid=1 block=64 arch=sm_90a
// policy: isa
// arg: flags u32[2]=arange
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: missing-proxy-fence @poll @load severity=note
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const u32* flags, const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, seen;
    if (t == 0) {
        init(full, 1);
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(__cvta_generic_to_global(flags + 1)) : "memory"); /*@poll*/
        while (!seen);
    }
    __syncthreads();
    if (t == 32) {
#ifndef RACY
        fence_async_global();
#endif
        expect(full, sizeof(tile));
        bulk_load(tile, x, sizeof(tile), full); /*@load*/
    }
    wait(full, 0);
    out[t] = tile[t];
}
