// Stored columns are loaded before the stores are known to be complete (R-T4).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-wait RAW @store @load severity=error
// result: out = np.where(np.arange(64) < 8, np.arange(64) + 1, 0) + np.zeros((128, 1))
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    prepare(a, x, b, y, base, done);
    float v[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    store(own_lanes(base), v);  /*@store*/
#ifndef RACY
    wait_stores();
#endif
    load(v, own_lanes(base));  /*@load*/
    wait_loads();
    wait_stores();
    put(out, 0, v);
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
