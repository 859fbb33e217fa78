// A flag in global memory, that another kernel sets, is taken by a compare-and-swap; the bulk load of what it tells of has its proxy fence too early,
// before the flag was seen: SEMANTICS D14, reported under --policy isa only.
// launch: grid=1 block=32 arch=sm_90a
// policy: isa
// arg: flags u32[2]=arange
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: missing-proxy-fence @poll @load severity=note
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(u32* flags, const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, seen;
    if (t == 0) {
        init(full, 1);
#ifdef RACY
        fence_async_global();
#endif
        do asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 1, 0;" : "=r"(seen) : "l"(__cvta_generic_to_global(flags + 1)) : "memory"); /*@poll*/
        while (!seen);
#ifndef RACY
        fence_async_global();
#endif
        expect(full, sizeof(tile));
        bulk_load(tile, x, sizeof(tile), full); /*@load*/
    }
    __syncthreads();
    wait(full, 0);
    for (u32 i = t; i < 64; i += 32) out[i] = tile[i];
}
