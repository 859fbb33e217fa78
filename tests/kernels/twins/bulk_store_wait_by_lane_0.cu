// The elected lane of a warp issues a bulk store, and lane 0 waits: no rule makes lane 0 the leader (R-EL1). GPUs elect it, so it goes well there.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// backends: cpu
// expect: missing-wait WAR @store @write severity=error
// result: out = x
#include "../hopper.cuh"
INLINE bool elected() {
    u32 leads;
    asm volatile("{ .reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0, p; }" : "=r"(leads)::"memory");
    return leads;
}
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    for (int k = 0; k < 2; k++) {
        tile[t] = x[k * 64 + t];  /*@write*/
        fence_async_shared();
        __syncthreads();
        if (t < 32) {
            bool leads = elected();
            if (leads) {
                bulk_store(out + k * 64, tile, sizeof tile);  /*@store*/
                bulk_commit();
            }
#ifdef RACY
            leads = t == 0;
#endif
            if (leads) bulk_wait_read<0>();
        }
        __syncthreads();
    }
    bulk_wait<0>();
}
