// G11: CTA 1 overwrites the source of a bulk load of CTA 0. It is behind the issue, by a flag, but not behind the completion.
//
// launch: grid=2 block=64 arch=sm_90a
// arg:    data f32[64]=arange
// arg:    flag u32[1]=zeros
// arg:    out f32[64]=zeros
// expect: missing-wait WAR @load @write severity=error
// result: out = np.arange(64, dtype=np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data, u32* flag, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(full, 1);
    __syncthreads();
    if (blockIdx.x == 0) {
        if (t == 0) {
            expect(full, sizeof(tile));
            bulk_load(tile, data, sizeof(tile), full);  /*@load*/
#ifndef RACY
            wait(full, 0);
#endif
            asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
        }
        wait(full, 0);
        out[t] = tile[t];
    } else {
        u32 seen = 0;
        if (t == 0)
            while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        __syncthreads();
        data[t] = -1;  /*@write*/
    }
}
