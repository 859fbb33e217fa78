// The product commits to the mbarrier of its operands, and to that of the accumulator, for which the warps wait with a stale parity (R-T5).
// launch: grid=1 block=160 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-wait RAW @multiply @load severity=error
// allow: barrier-misuse|missing-wait|lifetime severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
#ifdef RACY
#define PARITY 1
#else
#define PARITY 0
#endif
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 empty, full;
    if (threadIdx.x == 0) init(full, 1);
    prepare(a, x, b, y, base, empty);
    if (threadIdx.x == 128) {
        multiply(base, a, b, 0);  /*@multiply*/
        commit_to(full);
        commit_to(empty);
        wait(empty, 0);
    }
    if (threadIdx.x < 128) {
        wait(full, PARITY);
        float v[8];
        for (u32 column = 0; column < COLUMNS; column += 8) {
            load(v, own_lanes(base) + column);  /*@load*/
            wait_loads();
            put(out, column, v);
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
