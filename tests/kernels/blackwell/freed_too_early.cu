// The columns are freed while other warps may still load them (R-A7).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: data-race WAR @load @free severity=error
// allow: tcgen05-misuse @load @free severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    prepare(a, x, b, y, base, done);
    if (threadIdx.x == 0) {
        multiply(base, a, b, 0);
        commit_to(done);
    }
    wait(done, 0);
    float v[8];
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, own_lanes(base) + column);  /*@load*/
        wait_loads();
        put(out, column, v);
    }
#ifndef RACY
    __syncthreads();
#endif
    if (threadIdx.x < 32) dealloc(base, COLUMNS);  /*@free*/
}
