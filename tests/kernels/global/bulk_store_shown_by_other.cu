// One thread stores a tile by a bulk copy and waits until it is written. A thread of another warp sets the flag without having seen that.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[64]=random
// arg: tile f32[64]=zeros
// arg: flag u32[1]=zeros
// arg: out f32[64]=zeros
// expect: global-race RAW @store @read severity=error
// result: out = x * 2
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* tile, u32* flag, float* out) {
    __shared__ alignas(16) float staged[64];
    const u32 t = threadIdx.x;
    if (blockIdx.x == 0) {
        staged[t] = 2 * x[t];
        FENCE_PROXY();
        __syncthreads();
        if (t == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"  /*@store*/
                         ::"l"(__cvta_generic_to_global(tile)), "r"(shared(staged)) : "memory");  /*@store*/
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        }
#ifndef RACY
        __syncthreads();
#endif
        if (t == 32) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        u32 seen = 0;
        while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        out[t] = tile[t];  /*@read*/
    }
}
