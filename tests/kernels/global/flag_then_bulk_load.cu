// CTA 0 stores a tile, CTA 1 sees its flag and loads the tile by TMA. The flag orders the CTAs; a proxy fence for global memory has to lie between
// as well (R-GM12). Here the writers execute it, before the barrier and the release.
// launch: grid=2 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: tile f32[64]=zeros
// arg: flag u32[1]=zeros
// arg: out f32[64]=zeros
// expect: missing-proxy-fence RAW @store @load severity=error
// result: out = x + 1
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* tile, u32* flag, float* out) {
    __shared__ alignas(128) float copy[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, seen;
    if (blockIdx.x == 0) {
        tile[t] = x[t] + 1; /*@store*/
#ifdef RACY
        fence_async_shared();
#else
        fence_async_global();
#endif
        __syncthreads();
        if (t == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(flag)) : "memory");
        return;
    }
    if (t == 0) {
        init(full, 1);
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(__cvta_generic_to_global(flag)) : "memory");
        while (!seen);
        expect(full, sizeof(copy));
        bulk_load(copy, tile, sizeof(copy), full); /*@load*/
    }
    __syncthreads();
    wait(full, 0);
    out[t] = copy[t];
}
