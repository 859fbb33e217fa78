// G11: CTA 1 overwrites the source of a cp.async of CTA 0. It is behind the issue, by a flag, but not behind the thread's wait.
//
// launch: grid=2 block=32 arch=sm_90a
// arg:    data f32[128]=arange
// arg:    flag u32[1]=zeros
// arg:    out f32[128]=zeros
// expect: missing-wait WAR @copy @write severity=error
// result: out = np.arange(128, dtype=np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data, u32* flag, float* out) {
    __shared__ alignas(128) float tile[128];
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        u32 to = (u32)__cvta_generic_to_shared(tile + 4 * t);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(data + 4 * t) : "memory");  /*@copy*/
        asm volatile("cp.async.commit_group;" ::: "memory");
#ifndef RACY
        asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
        __syncthreads();
        if (t == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        for (int i = 0; i < 4; ++i) out[4 * t + i] = tile[4 * t + i];
    } else {
        u32 seen = 0;
        if (t == 0)
            while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        __syncthreads();
        for (int i = 0; i < 4; ++i) data[4 * t + i] = -1;  /*@write*/
    }
}
