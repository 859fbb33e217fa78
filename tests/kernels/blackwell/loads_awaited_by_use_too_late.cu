// No wait::ld: the registers of the loads are used only behind the arrival that gives the accumulator back (R-T3).
// launch: grid=1 block=160 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-wait WAR @load @multiply severity=error
// result: out = 3 * np.where(np.arange(64) < 8, x.astype(np.float32) @ y.astype(np.float32).T, 0)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 full, empty;
    if (threadIdx.x == 0) init(empty, 128);
    prepare(a, x, b, y, base, full);
    for (u32 tile = 0; tile < 3; ++tile) {
        if (threadIdx.x == 128) {
            if (tile) wait(empty, tile - 1 & 1);
            multiply(base, a, b, 0);  /*@multiply*/
            commit_to(full);
        }
        if (threadIdx.x < 128) {
            wait(full, tile & 1);
            float v[8];
            load(v, own_lanes(base));  /*@load*/
#ifndef RACY
            wait_loads();
#endif
            arrive(empty);
            for (u32 i = 0; i < 8; ++i) out[threadIdx.x * COLUMNS + i] += v[i];
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
