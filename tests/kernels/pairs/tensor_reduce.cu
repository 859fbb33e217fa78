// Gradient accumulation: tensor reduce-add (TMA) from double-buffered staging; then a grid-wide counter and a TMA load of the sum by one CTA.
// launch: grid=3 block=64 arch=sm_90
// arg: x f32[3,2,256]=random
// arg: sum tma:f32[16,32]=zeros,box=8x32
// arg: done u32[1]=zeros
// arg: y f32[512]=zeros
// result: y = x.sum(0).ravel()
// bug 1: missing-wait|global-race wait_group.read before the counter
// bug 2: missing-wait staging rewritten before the reduction has read it
// bug 3: missing-proxy-fence no fence before the reduction
// bug 4: global-race|missing-wait the counter is added before the reductions
// bug 5: global-race relaxed counter without fences
// bug 6: global-race|missing-wait plain tensor stores in place of reductions
// bug 7: clean no proxy fence between the poll and the load: async wrote it
// bug 8: deadlock the loads announce half of their bytes twice
#include "../hopper.cuh"
INLINE void tensor_add(const TensorMap& map, int x, int y, const void* from) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(&map), "r"(x), "r"(y), "r"(shared(from)) : "memory");
}
extern "C" __global__ void __launch_bounds__(64) kernel(const float* x, const __grid_constant__ TensorMap sum, u32* done, float* y) {
    __shared__ alignas(128) float stage[2][256];
    __shared__ alignas(8) u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) init(full, 1), fence_async_shared();
    __syncthreads();
#if BUG == 4
    if (t == 0) __threadfence(), atomicAdd(done, 1);
#endif
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        float* s = BUG == 2 ? stage[0] : stage[k];
        for (u32 i = t; i < 256; i += 64) s[i] = x[blockIdx.x * 512 + k * 256 + i];
#if BUG != 3
        fence_async_shared();
#endif
        __syncthreads();
        if (t == 0) {
#if BUG == 6
            tensor_store(sum, 0, k * 8, s);
#else
            tensor_add(sum, 0, k * 8, s);
#endif
            bulk_commit();
        }
    }
    if (t == 0) {
#if BUG == 1
        bulk_wait_read<0>();
#else
        bulk_wait<0>();
#endif
#if BUG != 4
#if BUG != 5
        __threadfence();
#endif
        atomicAdd(done, 1);
#endif
    }
    if (blockIdx.x) return;
    if (t == 0) {
#if BUG == 5
        while (((volatile u32*)done)[0] < 3) {}
#else
        u32 n;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(done) : "memory");
        while (n < 3);
#endif
#if BUG != 7
        fence_async();
#endif
        expect(full, BUG == 8 ? 4096 : 2048);
        tensor_load(stage[0], sum, 0, 0, full);
        tensor_load(stage[1], sum, 0, 8, full);
    }
    wait(full, 0);
    for (u32 i = t; i < 512; i += 64) y[i] = stage[i / 256][i % 256];
}
