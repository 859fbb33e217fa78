// CTA 0 stores a tile, CTA 1 sees its flag and loads the tile by TMA. The writers execute the proxy fence for global memory: the launch itself has
// written what is loaded, so nothing is left that the flag may announce (D14), also under --policy isa.
// launch: grid=2 block=64 arch=sm_90a
// policy: isa
// arg: x f32[64]=arange
// arg: tile f32[64]=zeros
// arg: flag u32[1]=zeros
// arg: out f32[64]=zeros
// result: out = x + 1
#include "../../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* tile, u32* flag, float* out) {
    __shared__ alignas(128) float copy[64];
    __shared__ u64 full;
    u32 t = threadIdx.x, seen;
    if (blockIdx.x == 0) {
        tile[t] = x[t] + 1;
        fence_async_global();
        __syncthreads();
        if (t == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(flag)) : "memory");
        return;
    }
    if (t == 0) {
        init(full, 1);
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(__cvta_generic_to_global(flag)) : "memory");
        while (!seen);
        expect(full, sizeof(copy));
        bulk_load(copy, tile, sizeof(copy), full);
    }
    __syncthreads();
    wait(full, 0);
    out[t] = copy[t];
}
