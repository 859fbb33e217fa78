// The issuing thread arrives where a commit belongs: the others load the accumulator when the product is issued, not when it is complete (R-T1).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-wait RAW @multiply @load severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done, free;
    if (threadIdx.x == 0) init(free, 1);
    prepare(a, x, b, y, base, done);
    if (threadIdx.x == 0) {
        multiply(base, a, b, 0);  /*@multiply*/
        commit_to(free);          // the operands
#ifdef RACY
        arrive(done);
#else
        commit_to(done);
#endif
    }
    wait(done, 0);
    float v[8];
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, own_lanes(base) + column);  /*@load*/
        wait_loads();
        put(out, column, v);
    }
    wait(free, 0);
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
