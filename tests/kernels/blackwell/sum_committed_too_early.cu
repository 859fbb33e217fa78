// The commit for the epilogue comes before the last product of the sum; that product is committed for its stage only (R-T5).
// launch: grid=1 block=192 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-wait RAW @last @load severity=error
// allow: missing-wait WAW @last @free severity=error
// result: out = 2 * (x.astype(np.float32) @ y.astype(np.float32).T)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done, stage;
    if (threadIdx.x == 0) init(stage, 1);
    prepare(a, x, b, y, base, done);
    if (threadIdx.x == 128) {
        multiply(base, a, b, 0);
#ifdef RACY
        commit_to(done);
#endif
        multiply(base, a, b, 1);  /*@last*/
        commit_to(stage);
#ifndef RACY
        commit_to(done);
#endif
    }
    if (threadIdx.x >= 160) wait(stage, 0);
    if (threadIdx.x < 128) {
        wait(done, 0);
        float v[8];
        for (u32 column = 0; column < COLUMNS; column += 8) {
            load(v, own_lanes(base) + column);  /*@load*/
            wait_loads();
            put(out, column, v);
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);  /*@free*/
}
